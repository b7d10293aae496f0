package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"airlock/envs"
	"airlock/envs/envstest"
	"airlock/tools"
)

// standIns tries each command of its input, and prints what the stand-ins refused. The host may have any of the
// programs or none: here each has its stand-in, and a program behind it that does nothing, as Python does with a
// module: no stand-in is behind that. It is for a run: some of the commands reach a real pip by its path.
const standIns = `mkdir -p /tmp/s /tmp/b /tmp/w/x; cd /tmp/w; echo six > requirements.txt; cp requirements.txt r.txt
printf '#!/bin/sh\n' > /tmp/b/sudo
printf '#!/bin/sh\ncase $1 in -m*|-Im|/*) ;; *) exec /usr/bin/python3 "$@";; esac\n' > /tmp/b/python3
chmod 755 /tmp/b/sudo /tmp/b/python3; cp /tmp/b/python3 /tmp/b/python
for p in $NAMES; do cp /run/airlock/bin/pip /tmp/s/$p; cp /tmp/b/sudo /tmp/b/$p; done
export PATH="/tmp/s:/tmp/b:$PATH" PIP_NO_INDEX=1 PIP_RETRIES=0
n=0
while read -r line; do
	n=$((n+1))
	if timeout 60 bash -c "$(echo "$line" | base64 -d)" < /dev/null 2>&1 | grep -q package_install; then echo "row $n refused"; else echo "row $n passed"; fi
done`

// The column "stand-in" of docs/installers.md is what the stand-ins on a run's PATH refuse, and what the column "read" says
// is refused is no run.
func TestInstallerTable(t *testing.T) {
	spellings, harmless, err := envstest.InstallerTable("docs/installers.md")
	if err != nil {
		t.Fatal(err)
	}
	in := openWithIndex(t, t.TempDir(), serveIndex(t, nil, nil), "")
	rows := append(spellings, harmless...)
	var input strings.Builder
	for _, row := range rows {
		fmt.Fprintln(&input, base64.StdEncoding.EncodeToString([]byte(row.Command)))
	}
	text := in.run(tools.Request{Tool: "run_shell", Command: standIns, Stdin: input.String(), Env: map[string]string{"NAMES": strings.Join(envs.StubNames, " ")}, Timeout: 10 * time.Minute}) + "\n"
	for i, row := range rows {
		if err := in.runner.Permit(tools.Request{Tool: "run_shell", Command: row.Command}); (err != nil) != row.Read {
			t.Errorf("%s: as a call: %v, the table says %t", row.Command, err, row.Read)
		}
		refused := strings.Contains(text, fmt.Sprintf("row %d refused\n", i+1))
		if refused == strings.Contains(text, fmt.Sprintf("row %d passed\n", i+1)) {
			t.Fatalf("%s: was not tried: %s", row.Command, text)
		}
		if refused != row.StandIn {
			t.Errorf("%s: refused %t, the table says %t", row.Command, refused, row.StandIn)
		}
	}
}
