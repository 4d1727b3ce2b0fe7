#!/usr/bin/env bash
# Builds a command with progress in plain words. Usage: tools/build.sh TITLE MODULE_FOLDER PACKAGE OUTPUT [BUILD_TAGS]
set -euo pipefail
title=$1 dir=$2 package=$3 output=$4 tags=${5:-}
say_every=15 # seconds

root=$PWD
cd "$dir"
started=$SECONDS
echo "$title"
total=$(go list -deps -tags "$tags" "$package" | wc -l) # fetches modules that are missing

# -v names each package when it has been compiled; everything else that go says is passed on.
{ go build -v -trimpath -ldflags "-s -w" -tags "$tags" -o "$root/$output" "$package" 2>&1 || echo "!failed"; } | {
	compiled=0 said=$SECONDS failed=
	while IFS= read -r line; do
		if [[ $line == '!failed' ]]; then
			failed=1
		elif [[ $line =~ ^[A-Za-z0-9._/~-]+$ ]]; then
			compiled=$((compiled + 1))
		else
			printf '%s\n' "$line" >&2
		fi
		if ((SECONDS - said >= say_every)); then
			said=$SECONDS
			echo "      $compiled packages compiled of at most $total, $((SECONDS - started)) s"
		fi
	done
	[[ -z $failed ]]
}
echo "      $output: $(($(wc -c <"$root/$output") / 1000000)) MB, after $((SECONDS - started)) s"
