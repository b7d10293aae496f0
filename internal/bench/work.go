package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const workRounds = 15

// work is something that developers have done, again and again.
type work struct {
	name    string
	needs   string // a program
	setUp   string // a script for the directory, once
	before  string // another, before each time
	command string
	answer  string // in the answer of a run
}

var works = []work{
	{
		name: "`make -j2` of 60 C files", needs: "gcc",
		setUp: `for i in $(seq 60); do
	printf '#include <stdio.h>\n#include <string.h>\nint f%d(const char *s) { char b[64]; snprintf(b, sizeof b, "%%s", s); return (int)strlen(b) + %d; }\n' $i $i > f$i.c; done
printf 'objects := $(patsubst %%.c,%%.o,$(wildcard f*.c))\nlib.a: $(objects)\n\tar rcs $@ $^\n%%.o: %%.c\n\tgcc -O1 -c -o $@ $<\n' > Makefile`,
		before: "rm -f *.o lib.a", command: "make -s -j2", answer: "workspace: 61 added",
	},
	{
		name: "`git status` on 10,000 files", needs: "git",
		setUp: `git init -q . && git config user.email a@b.invalid && git config user.name a
for d in $(seq 100); do mkdir d$d; for f in $(seq 100); do echo $f > d$d/f$f; done; done
git add -A && git commit -qm all`,
		command: "git status --short", answer: "exit=0",
	},
	{
		name: "`tar -xf` of 5,000 files", needs: "tar",
		setUp:  `mkdir t; for d in $(seq 50); do mkdir t/d$d; for f in $(seq 100); do echo $f > t/d$d/f$f; done; done; tar -cf t.tar t; rm -r t`,
		before: "rm -rf t", command: "tar -xf t.tar", answer: "added",
	},
	{
		name: "`python3 -m compileall` of 300 modules", needs: "python3",
		setUp: `mkdir p; for i in $(seq 300); do for k in $(seq 20); do echo "def f$k(a, b): return [x * a + b for x in range($k)]"; done > p/m$i.py; done`,
		// What is compiled is ignored by default (workspace.ignore), so that each time compiles all.
		before: "rm -rf p/__pycache__", command: "python3 -m compileall -q p", answer: "exit=0",
	},
	{
		name: "`cp -a` of a 256 MiB file", needs: "cp",
		setUp:  "head -c 268435456 /dev/urandom > big",
		before: "rm -f copy", command: "cp -a big copy", answer: "workspace: 1 added",
	},
}

// work compares work that developers have done, bare and by run_shell, with its landing.
func (b bench) work(ctx context.Context, dir string) error {
	for i, w := range works {
		if _, err := exec.LookPath(w.needs); err != nil {
			fmt.Printf("\n%s: not run: %s is not installed\n", w.name, w.needs)
			continue
		}
		s, err := startServer(ctx, b.airlock, filepath.Join(dir, fmt.Sprint(i)), "")
		if err != nil {
			return err
		}
		err = b.compare(ctx, w, s, filepath.Join(dir, fmt.Sprint("bare", i)))
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b bench) compare(ctx context.Context, w work, s *server, bare string) error {
	if err := os.Mkdir(bare, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{bare, s.workspace} {
		if err := spawn(ctx, dir, "bash", "-c", w.setUp); err != nil {
			return err
		}
	}
	prepare := func(dir string) func() error {
		return func() error {
			return errors.Join(spawn(ctx, dir, "bash", "-c", strings.Trim(w.before+"\ntrue", "\n")), settle())
		}
	}
	ways := []*way{
		{name: "bare", before: prepare(bare), do: func() error { return spawn(ctx, bare, "sh", "-c", w.command) }},
		{name: "`run_shell`", before: prepare(s.workspace), do: func() error { return s.run(ctx, w.command, w.answer) }},
	}
	if err := b.takeInTurn(workRounds, ways); err != nil {
		return err
	}
	fmt.Print(table(fmt.Sprintf("%s (%d rounds)", w.name, b.rounds(workRounds)), ways))
	return nil
}
