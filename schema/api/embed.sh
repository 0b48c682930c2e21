#!/bin/sh
# Prints schema/api/*.json, the given files, as the C table of daemon/http/openapi.h.
set -e
echo '#include "daemon/http/openapi.h"'
echo 'const struct api_doc api_docs[] = {'
for file in "$@"; do
    echo "    {\"$(basename "$file" .json)\","
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
    echo '    },'
done
echo '    {NULL, NULL}};'
