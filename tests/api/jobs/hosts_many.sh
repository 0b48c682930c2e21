#!/usr/bin/env bash
# 600 hosts (of TEST-NET, so no name service is asked) are asked by a process that may have few descriptors open.
# shellcheck source=tests/api/lib.sh
. "$(dirname "$0")/../lib.sh"

write_script "$work/agent" <<'END'
#!/bin/sh
echo "no way to $1" >&2
exit 255
END
ask_with() { # DESCRIPTORS
    jq -n --arg agent "$work/agent" --arg dir "$work" '{agent: $agent, interface: null, worker: "/bin/true", run_dir: $dir, attempt: 1, nodes: 1,
        workers_per_node: 1, threads: 1, bind: 0, smt: false, hosts: [range(600) | "203.0.\(. / 250 | floor).\(. % 250 + 1)" | {entry: ., name: .}]}' >"$work/hosts.json"
    (ulimit -n "$1" && timeout 300 "$traind" --launch-hosts "$work" /bin/false >"$work/out" 2>&1)
    like $? '^[1-9]' "with $1 descriptors none is there"
    is "$(jq '[.hosts[] | select(.problem == "does not answer: no way to \(.name)")] | length' "$work/hosts.json")" 600 "with $1 descriptors each said why itself"
    is "$(grep -c 'descriptor\|Too many' "$work/out")" 0 "of $1 descriptors none was missing"
}
ask_with 200
ask_with 100
done_testing
