#!/usr/bin/env bash
# The dashboard in Debian's Chromium against a real daemon and a real short training. Prints TAP (page.mjs).
. "$(dirname "$0")/../api/lib.sh"

for tool in npm node chromium; do
    command -v $tool >/dev/null || {
        echo "1..0 # SKIP $tool was not found: apt-get install nodejs npm chromium"
        exit 0
    }
done

# The page as it is installed: its files, and the bundled ones from where they were built.
dir=$work/browser
mkdir -p "$dir" "$work/web/vendor"
cp "$top_srcdir"/web/*.{html,js,css,svg} "$work/web/"
for file in uPlot.iife.min.js uPlot.min.css; do
    cp "$top_builddir/web/vendor/$file" "$work/web/vendor/" 2>/dev/null || cp "$top_srcdir/web/vendor/$file" "$work/web/vendor/"
done
printf 'worker = %s\nweb_dir = %s\n' "$top_builddir/train-worker" "$work/web" >"$dir/traind.conf"

cp "$top_srcdir"/tests/browser/{package.json,package-lock.json,browser.mjs,page.mjs} "$dir"
if ! (cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --silent); then
    echo "not ok 1 - npm ci of playwright-core and axe-core"
    echo "1..1"
    exit 1
fi
start_daemon --config "$dir/traind.conf"
HOME=$dir node "$dir/page.mjs" "$url"
