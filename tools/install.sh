#!/usr/bin/env bash
# Builds one tool at its pinned version into .tools/, once. Usage: tools/install.sh MODULE/PACKAGE@VERSION TARGET
set -euo pipefail
package=$1 target=$2
[[ -x $target ]] && exit 0
echo "Building $package, once" >&2
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
# Outside the checkout: neither its go.mod nor a go.work above it says what a tool is made of.
(cd "$bin" && GOWORK=off GOBIN=$bin go install "$package")
mkdir -p "$(dirname "$target")"
name=${package%@*} name=${name##*/}
if [[ $name =~ ^v[0-9]+$ ]]; then name=$(basename "$(dirname "${package%@*}")"); fi
mv "$bin/$name" "$target"
