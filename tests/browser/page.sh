#!/usr/bin/env bash
# The dashboard in Debian's Chromium against a real daemon and a real short training. Prints TAP (page.mjs).
. "$(dirname "$0")/../api/lib.sh"

# shellcheck source=tests/browser/install.sh.inc
. "$top_srcdir/tests/browser/install.sh.inc"
browser_needed

# The page as it is installed: its files, and the bundled ones from where they were built.
dir=$work/browser
mkdir -p "$dir" "$work/web/vendor"
cp -r "$top_srcdir"/web/{*.{html,js,css,svg},views} "$work/web/"
for file in uPlot.iife.min.js uPlot.min.css; do
    cp "$top_builddir/web/vendor/$file" "$work/web/vendor/" 2>/dev/null || cp "$top_srcdir/web/vendor/$file" "$work/web/vendor/"
done
printf 'worker = %s\nweb_dir = %s\n' "$top_builddir/train-worker" "$work/web" >"$dir/traind.conf"

browser_install "$dir" page.mjs
start_daemon --config "$dir/traind.conf"
HOME=$dir node "$dir/page.mjs" "$url"
