#!/bin/sh
# Prints the completion scripts, files as "SHELL=FILE", as the C table of client/complete.c.
set -e
echo 'extern const char *const cmd_completions[][2];'
echo 'const char *const cmd_completions[][2] = {'
for pair in "$@"; do
    echo "    {\"${pair%%=*}\","
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "${pair#*=}"
    echo '    },'
done
echo '    {0}};'
