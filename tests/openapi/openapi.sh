#!/usr/bin/env bash
# The OpenAPI document as others read it: redocly's linter finds nothing, and a TypeScript client that is made from it compiles and
# talks to a real daemon.
. "$(dirname "$0")/../api/lib.sh"
command -v npm >/dev/null || skip_all "npm was not found: apt-get install npm"
dir=$work/npm
mkdir "$dir"
cp "$top_srcdir"/tests/openapi/*.{json,mjs,ts} "$top_srcdir/schema/openapi.json" "$dir" || exit
(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --silent >/dev/null 2>&1)
ok "npm installs the tools" test -x "$dir/node_modules/.bin/tsc"
cd "$dir" || exit
is "$(node lint.mjs openapi.json 2>&1)" "" "redocly's recommended rules find nothing"
ids=$(jq -r '.paths[][].operationId' openapi.json)
is "$(grep -vE '^[a-z]+[A-Z][A-Za-z]+$' <<<"$ids")" "" "operations are called as verbs: cancelJob"
ok "types are made" node_modules/.bin/openapi-typescript openapi.json --output traind.ts
ok "the client and they compile, strictly" node_modules/.bin/tsc --strict --skipLibCheck --target es2022 --module nodenext --types node client.ts
cd - >/dev/null || exit
write_script "$work/mpirun" <<'END'
#!/bin/sh
exec sleep 300
END
printf '%s\n' "mpirun = $work/mpirun" "worker = $work/mpirun" 'slots = 1' 'node_check_seconds = 0' 'cancel_grace_seconds = 0' >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
# The only slot is taken: what the client submits waits.
call --json '{"data": {"train": "synthetic"}, "steps": 2, "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}' /v1/jobs
first=$(jq .id <<<"$body")
told=$(node "$dir/client.js" "$url" 2>&1)
like "$told" '^plan 200 48$' "it plans"
like "$told" '^submitJob 201 queued$' "it submits"
like "$told" '^getJob 200 by a client 90$' "and reads the job, with its defaults"
like "$told" '^listJobs 200 1 true$' "it finds it"
like "$told" '^cancelJob true$' "and cancels it"
like "$told" '^problem 422 /data/train$' "a refusal says where"
call -X POST "/v1/jobs/$first/cancel"
ok "no job is left" eventually no_job_left
ok "the daemon stops in order" stop_daemon
done_testing
