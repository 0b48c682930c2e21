#!/bin/sh
# Prints the roles of an OpenAPI document (standard input) as a Markdown table, for doc/security.md.
echo '| who | may |'
echo '|---|---|'
jq -r '[.paths | to_entries[] | .key as $path | .value | to_entries[] |
        {role: .value["x-role"], route: "`\(.key | ascii_upcase) \($path)`"}] as $routes |
    .["x-roles"][] | .name as $name |
    [(.includes | if length > 0 then "what these may: \(join(", "))" else empty end),
     ($routes | map(select(.role == $name).route) | if length > 0 then join(", ") else empty end),
     (.may // empty)] |
    "| \($name) | \(join("; ")) |"'
