#!/bin/bash
# The dashboard's and the browser tests' JavaScript, by eslint from npm.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
needs npm
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$top_srcdir"/tests/eslint/*.json "$dir" || exit
(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --silent)
ok "npm installs eslint" test -x "$dir/node_modules/.bin/eslint"

check() { # check NAME ENVIRONMENT FILE...
    local name=$1 environment=$2 out
    shift 2
    out=$(cd "$dir" && node_modules/.bin/eslint --no-eslintrc --config eslintrc.json --env "$environment" --no-ignore "$@" 2>&1)
    report $? "$name" "$out"
}
top=$(cd "$top_srcdir" && pwd)
check "web/" browser "$top"/web/*.js "$top"/web/{charts,sweep,views}/*.js
check "tests/browser/" browser,node "$top"/tests/browser/{,lib/}*.mjs
done_testing
