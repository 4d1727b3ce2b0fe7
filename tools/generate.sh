#!/usr/bin/env bash
# Makes otelcol-llm/ from builder-config.yaml with ocb. Usage: tools/generate.sh OCB [--check]
# --check changes nothing, and fails when what is committed is not what ocb makes.
set -euo pipefail
ocb=$1 check=${2:-}
cd "$(dirname "$0")/.."

# The file exporter v0.148.0 names a module in its tests which is in no checksum database.
export GONOSUMDB=${GONOSUMDB:+$GONOSUMDB,}github.com/open-telemetry/opentelemetry-collector-contrib/extension/encoding/*

out=otelcol-llm manifest=builder-config.yaml
if [[ $check == --check ]]; then
	# A sibling of otelcol-llm/, so that `replace … => ../` means the same and the results can be compared.
	out=$(mktemp -d .generated.XXXXXX) manifest=$out/builder-config.yaml
	trap 'rm -rf "$out"' EXIT
	sed "s#^\( *output_path:\).*#\1 ./$out#" builder-config.yaml >"$manifest"
fi

log=$(mktemp)
if ! "$ocb" --config "$manifest" --skip-compilation >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
rm -f "$log"

if [[ $check == --check ]]; then
	rm -f "$manifest"
	# The binary that `go build` may have left in the folder is not generated.
	if ! diff -ru --exclude=otelcol-llm "otelcol-llm" "$out"; then
		echo "otelcol-llm/ is not what builder-config.yaml and go.mod say: run \`make generate\` and commit it" >&2
		exit 1
	fi
	echo "otelcol-llm/ is current"
fi
