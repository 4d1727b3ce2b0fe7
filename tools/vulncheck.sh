#!/usr/bin/env bash
# Offline govulncheck of a binary, judged by tools/vulngate. Usage: tools/vulncheck.sh BINARY
# The database is a Go module (VULNDB_VERSION in tools/versions.env), indexed once into .tools/.
set -euo pipefail
binary=$1
cd "$(dirname "$0")/.."
. tools/versions.env

govulncheck=.tools/govulncheck-$GOVULNCHECK_VERSION
indexdb=.tools/indexdb-$VULNDB_VERSION
db=.tools/vulndb-$VULNDB_VERSION
tools/install.sh "golang.org/x/vuln/cmd/govulncheck@$GOVULNCHECK_VERSION" "$govulncheck"
if [[ ! -f $db/index/db.json ]]; then
	tools/install.sh "golang.org/x/vulndb/cmd/indexdb@$VULNDB_VERSION" "$indexdb"
	echo "Indexing the vulnerability database, once" >&2
	source=$(cd / && GOWORK=off go mod download -json "golang.org/x/vulndb@$VULNDB_VERSION" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
	rm -rf "$db.tmp"
	"$indexdb" -vulns "$source/data/osv" -out "$db.tmp"
	mv "$db.tmp" "$db"
fi

echo "$binary against the vulnerability database of $VULNDB_VERSION" >&2
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$govulncheck" -mode binary -format json -db "file://$PWD/$db" "$binary" >"$report"
go run ./tools/vulngate -allow tools/vuln-allow.txt <"$report"
