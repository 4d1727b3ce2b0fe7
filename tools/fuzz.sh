#!/usr/bin/env bash
# Runs every fuzz test of the module for a while, one after another. Usage: tools/fuzz.sh 2m
set -euo pipefail
for_each=$1
for package in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $name for $for_each"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$for_each" "$package"
	done
done
