#!/bin/sh
# A stand-in of airlock's: it refuses to install packages, and executes the program itself for the rest.
name=${0##*/}

refuse() {
	echo "refused: $name $1 is not how packages are installed here: use the tool package_install (for good; with language \"r\" for R) or python_env with action \"request\" (Python, for this conversation), so that the user decides the whole set" >&2
	exit 126
}

# first WORDS: refuses if the first argument that is no option is one of the words.
first() {
	for arg in $args; do
		case $arg in -*) continue ;; esac
		for word in "$@"; do
			[ "$arg" != "$word" ] || refuse "$arg"
		done
		return
	done
}

args=
offline=
for arg; do
	case $arg in
	-h | --help | --offline) offline=yes ;;
	*[!A-Za-z0-9._=-]*) ;; # no subcommand has such a name
	*) args="$args $arg" ;;
	esac
done

if [ -z "$offline" ]; then
	case $name in
	pip | pip[0-9]*)
		for arg in $args; do
			case $arg in
			install | download | wheel) refuse "$arg" ;;
			uninstall | freeze | inspect | list | show | check | config | search | cache | index | hash | completion | debug | help) break ;;
			esac
		done ;;
	easy_install) refuse "" ;;
	pipx) first install inject upgrade reinstall run install-all upgrade-all ;;
	uv)
		case " $args " in *" pip install "* | *" pip sync "* | *" tool install "* | *" tool run "*) refuse "$args" ;; esac
		first add sync ;;
	conda | mamba | micromamba)
		case " $args " in *" env create "* | *" env update "*) refuse "$args" ;; esac
		first install create update upgrade ;;
	poetry | pdm | pipenv) first add install update sync lock ;;
	apt | apt-get | aptitude) first install update upgrade dist-upgrade full-upgrade build-dep reinstall ;;
	dnf | yum) first install update upgrade groupinstall localinstall reinstall ;;
	apk) first add update upgrade ;;
	npm) first install i in ins inst isntall add ci clean-install install-test it update up upgrade ;;
	pnpm) first install i add update up dlx ;;
	yarn)
		[ $# -gt 0 ] || refuse ""
		first install add upgrade up ;;
	R | Rscript)
		case "$*" in
		*"CMD INSTALL"*) refuse "CMD INSTALL" ;;
		*install.packages*\(* | *update.packages*\(* | *BiocManager::install* | *remotes::install_* | *devtools::install* | *pak::pkg_install*) refuse "-e" ;;
		esac ;;
	esac
fi

self=${0%/*}
IFS=:
for dir in $PATH; do
	if [ "$dir" != "$self" ] && [ -x "$dir/$name" ] && [ ! -d "$dir/$name" ]; then
		exec "$dir/$name" "$@"
	fi
done
echo "$name: not found" >&2
exit 127
