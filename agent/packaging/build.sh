#!/usr/bin/env bash
# Builds the packages into dist/: RPM and deb, for amd64 and arm64, of the agent, of
# every plugin, of bursar-epilog, and of the aggregator with the command line. `make packages` calls it.
#
# The same commit gives the same bytes, wherever and whenever it is built: binaries
# have no paths and no C in them, and all times are that of the commit.
#
#   NFPM, MD2MAN      the tools
#   PACKAGE_VERSION   default: the last tag, the commits since and the commit's id
#   ARCHES, FORMATS   default: "amd64 arm64", "rpm deb"
#   DIST              where the packages go; default dist
#   WORK              where what goes into them is made; default bin/packages
#
# `build.sh images` makes OCI images of the daemons instead, for all ARCHES at once.
# `make images` calls it.
#
# `build.sh plugins` makes nothing: it lists the packages of plugins, each with the
# package that it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."

# version: that of git, in a form that rpm and dpkg order alike.
version() {
	local tag count
	tag=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)
	count=$(git rev-list --count "${tag:+$tag..}HEAD")
	if [ -n "$tag" ] && [ "$count" = 0 ]; then
		printf '%s' "${tag#v}" | tr - '~'
	else
		printf '%s+%s.g%s' "$(printf '%s' "${tag:-v0.0.0}" | sed 's/^v//' | tr - '~')" "$count" "$(git rev-parse --short=8 HEAD)"
	fi
	[ -z "$(git status --porcelain --untracked-files=no)" ] || printf '.dirty'
}

export PACKAGE_VERSION=${PACKAGE_VERSION:-$(version)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CGO_ENABLED=0 GOOS=linux GOARCH
WORK=${WORK:-bin/packages} DIST=${DIST:-dist}
export TZ=UTC LC_ALL=C
umask 022

# plugins: the folders of all plugins but the example.
plugins() {
	local dir
	for dir in plugins/source/*/ plugins/action/*/; do
		dir=${dir%/}
		if [ -e "$dir/main.go" ] && [ "${dir##*/}" != example ]; then printf '%s\n' "$dir"; fi
	done
}

# program DIR: the name of the program of a plugin.
program() { printf 'bursar-%s-%s' "$(basename "$(dirname "$1")")" "$(basename "$1")"; }

# daemon DIR: the package of the daemon that runs a plugin.
daemon() {
	case $1 in
	plugins/source/*) printf bursar-agent ;;
	plugins/action/*) printf bursar ;;
	esac
}

# binaries: all programs but the example, in one folder.
binaries() {
	make --no-print-directory build BIN="$WORK/$GOARCH" GOFLAGS=-buildvcs=false LDFLAGS="-s -w -buildid= -X main.version=$PACKAGE_VERSION"
	mv "$WORK/$GOARCH"/plugins/* "$WORK/$GOARCH"
	rm -r "$WORK/$GOARCH"/{plugins,built,bursar-source-example}
}

# pages: the manual and what completes command lines in a shell.
pages() {
	local page
	GOARCH='' GOOS='' go run ./agent/packaging/pages "$WORK/pages" $(plugins)
	GOARCH='' GOOS='' go run ./aggregator/packaging/pages "$WORK/pages"
	for page in "$WORK"/pages/*.md; do
		"$MD2MAN" -in "$page" -out "${page%.md}"
		gzip -9nf "${page%.md}"
	done
}

# scripts PACKAGE SYSUSERS: those of a daemon, and of its plugins.
scripts() {
	local script to=$WORK/$1/scripts
	mkdir -p "$to"
	for script in preinstall postinstall preremove postremove plugin; do
		sed -e "s,@PACKAGE@,$1,g; s,@USER@,$1,g" -e "/@SYSUSERS@/{" -e "r $2" -e d -e "}" \
			"agent/packaging/scripts/$script.sh" >"$to/$script.sh"
	done
}

# expand FILE replaces the variables in it; nfpm itself does so in some places only.
expand() {
	local name script=
	for name in PACKAGE_VERSION GOARCH WORK PLUGIN PLUGIN_DIR PLUGIN_DAEMON PLUGIN_SUMMARY; do
		script+="s|\${$name}|${!name:-}|g;"
	done
	sed "$script" "$1"
}

# package CONFIG adds one package in each format to the list of those to make.
package() {
	local format config
	config=$(mktemp "$WORK/nfpm.XXXXXX")
	expand "$1" >"$config"
	for format in ${FORMATS:-rpm deb}; do
		printf '%s %s\n' "$config" "$format" >>"$WORK/list"
	done
}

# make_package CONFIG FORMAT
make_package() {
	"$NFPM" package -f "$1" -p "$2" -t "$DIST/" >"$1.$2.log" || { cat "$1.$2.log" >&2; return 1; }
	grep '^created' "$1.$2.log"
}
export -f make_package

packages() {
	rm -f "$WORK/list"
	package agent/packaging/nfpm.yaml
	package aggregator/packaging/nfpm.yaml
	package agent/packaging/epilog/nfpm.yaml
	local dir
	for dir in $(plugins); do
		PLUGIN=$(program "$dir") PLUGIN_DIR=$dir PLUGIN_DAEMON=$(daemon "$dir")
		PLUGIN_SUMMARY=$(sed -n 1p "$WORK/pages/$PLUGIN.summary")
		package agent/packaging/plugin.nfpm.yaml
	done
	# Most of it is compression, on one processor each.
	NFPM=$NFPM DIST=$DIST xargs -P "$((2 * $(nproc)))" -n 2 bash -c 'make_package "$@"' make_package <"$WORK/list"
}

if [ "${1:-}" = plugins ]; then
	for dir in $(plugins); do printf '%s %s\n' "$(program "$dir")" "$(daemon "$dir")"; done
	exit
fi

if [ "${1:-}" = images ]; then
	rm -rf "$WORK"
	mkdir -p "$WORK" "$DIST"
	rm -f "$DIST"/bursar*.oci.tar
	for GOARCH in ${ARCHES:-amd64 arm64}; do binaries; done
	# A tag of an image has no plus sign.
	# shellcheck disable=SC2086 # a word each
	GOARCH='' GOOS='' go run ./agent/packaging/images -version "${PACKAGE_VERSION//[+~]/-}" -epoch "$SOURCE_DATE_EPOCH" \
		-binaries "$WORK" -out "$DIST" ${ARCHES:-amd64 arm64}
	exit
fi

rm -rf "$WORK"
mkdir -p "$WORK" "$DIST"
WORK=$(realpath "$WORK") # nfpm takes no .. in a path
rm -f "$DIST"/bursar*.rpm "$DIST"/bursar*.deb
pages
scripts bursar-agent agent/packaging/sysusers.conf
scripts bursar aggregator/packaging/sysusers.conf
for GOARCH in ${ARCHES:-amd64 arm64}; do
	binaries
	packages
done
