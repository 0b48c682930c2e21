#!/bin/sh
# Prints the routes of an OpenAPI document (standard input) as mdoc, for the ROUTES section of man/traind.8.
echo '.Bl -tag -width Ds'
jq -r '.paths | to_entries[] | .key as $path | .value | to_entries[] |
    ".It Cm \(.key | ascii_upcase) Pa \($path)\(.value.parameters // [] | map(select(.in == "query").name) |
        if length > 0 then "\n.Pq Li \(join(" , "))" else "" end)
\(.value.summary | gsub("\\\\"; "\\e") | gsub("\\. (?<next>[A-Z])"; ".\n\(.next)")).
Role: \(.value["x-role"])."'
echo .El
