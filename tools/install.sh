#!/usr/bin/env bash
# Builds one tool at its pinned version into .tools/, once. Usage: tools/install.sh MODULE/PACKAGE@VERSION TARGET [as-tool]
# as-tool is for modules with replace directives, which go install refuses.
set -euo pipefail
package=$1 target=$2 how=${3:-install}
[[ -x $target ]] && exit 0
echo "Building $package, once" >&2
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
# Outside the checkout: neither its go.mod nor a go.work above it says what a tool is made of.
(
	cd "$bin"
	export GOWORK=off GOBIN=$bin
	if [[ $how == as-tool ]]; then
		go mod init tool 2>/dev/null
		go get -tool "$package" 2> >(grep -v '^go: added' >&2)
		package=${package%@*}
	fi
	go install "$package"
)
mkdir -p "$(dirname "$target")"
name=${package%@*} name=${name##*/}
if [[ $name =~ ^v[0-9]+$ ]]; then name=$(basename "$(dirname "${package%@*}")"); fi
mv "$bin/$name" "$target"
