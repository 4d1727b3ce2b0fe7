#!/usr/bin/env bash
# Runs every fuzz test of the module for a while, one after another. Usage: tools/fuzz.sh 2m
set -euo pipefail
for_each=$1
for package in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $name for $for_each"
		# What runs differently each time, as over maps, would be made smaller for a minute after every find.
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$for_each" -fuzzminimizetime 5s "$package"
	done
done
