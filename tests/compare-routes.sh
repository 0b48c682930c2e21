#!/usr/bin/env bash
# Compares two builds of traind: both answer every GET of the API on a copy of one recorded state folder, and their answers are compared byte by
# byte. Not a test of make check, as it needs a build of before.
#
#   tests/compare-routes.sh --record STATE BUILD    runs some twelve small jobs by BUILD's traind and keeps its state folder as STATE
#   tests/compare-routes.sh STATE OLD NEW           compares; prints a diff for each answer that differs, and the count; exits 1 if one does
#
# BUILD, OLD and NEW are build folders. What an answer says of its moment or of the build itself is masked, see masked.
set -u
top_srcdir=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}

record() { # STATE BUILD
    top_builddir=$(cd "$2" && pwd)
    kept=$(realpath "$1")
    # shellcheck source=tests/api/runs.sh.inc
    . "$top_srcdir/tests/api/runs.sh.inc"
    export OMP_NUM_THREADS=1
    printf '%s\n' "worker = $top_builddir/tests/bin/train-worker" "slots = 2" "restart_delay_seconds = 0" "keep_runs = 0" >"$work/traind.conf"
    start_daemon --config "$work/traind.conf"
    end() {
        [ "$1" -gt 0 ] || { echo "refused: $body"; exit 2; }
        eventually in_state "$1" 'succeeded|failed|cancelled' || echo "job $1 has not ended"
    }
    small='{"data": {"train": "synthetic", "eval": "synthetic", "train_images": 64}, "steps": 8, "batch_per_worker": 4,
        "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}, "checkpoint": {"every_steps": 4}, "eval": {"batch": 8}'
    submit profiled '' "$small"', "profile": {"steps": [2, 3]}, "priority": 3}' && end "$id"
    submit labelled '{"workers_per_node": 1, "threads_per_worker": 1}' "$small"', "seed": 7}' && end "$id"
    call -d '{"tags": ["one", "two"], "note": "kept"}' "/v1/jobs/$id/label"
    submit reproduced '' "$small"', "reproduces": 1, "profile": {"steps": [2, 3]}}' && end "$id"
    submit diverges '{"workers_per_node": 1}' '{"lr": {"base": 1e9}, "steps": 50, "data": {"train": "synthetic", "train_images": 64},
        "model": {"arch": "resnet18", "width": 0.0625, "image_size": 32, "classes": 10}}' && end "$id"
    submit cancelled '' "${small/\"steps\": 8/\"steps\": 100000}}" && eventually has_events "$id" 5
    call -X POST "/v1/jobs/$id/cancel"
    end "$id"
    call -X POST "/v1/jobs/$id/resume"
    call -X POST "/v1/jobs/$id/cancel"
    end "$id"
    submit bf16 '{"workers_per_node": 1, "threads_per_worker": 2}' "${small/0.0625/0.5}"', "precision": "bf16", "lr": {"base": 0.05}}' && end "$id"
    jq '{base: (. + {priority: 0}), parameters: {"/seed": [1, 2, 3]}, metric: "loss"}' "$work/job.json" >"$work/sweep.json"
    call -d "@$work/sweep.json" /v1/sweeps
    [ "$status" = 201 ] || echo "refused: $body"
    eventually sweep_has_ended
    call -d '{"name": "first", "role": "read"}' /v1/tokens
    call -d '{"kind": "AMD EPYC 9534", "cores": 64, "phase": "prolog", "outcome": "fine", "t": 1789.25, "gflops": 102}' /v1/nodes/n1/report
    submit stopped '' "${small/\"steps\": 8/\"steps\": 100000}}" && eventually has_events "$id" 5
    stopped=$id
    submit waits '' "$small"'}'
    call -X POST "/v1/jobs/$id/hold"
    call -X POST "/v1/jobs/$stopped/cancel"
    end "$stopped"
    stop_daemon
    cp "$work/traind.conf" "$state/"
    cp -a "$state" "$kept"
    echo "recorded $(sqlite3 "$kept/traind.db" 'select count(*) from job') jobs in $kept"
    exit
}
sweep_has_ended() { [ "$(sql "select count(*) from job where name like 'bf16 %' and state in ('succeeded', 'failed')")" = 3 ]; }

start() { # NAME STATE BUILD: sets url_of, pid_of and build_of of NAME
    local copy=$work/$1/state waited=0
    mkdir "$work/$1" && cp -a "$2" "$copy"
    rm -f "$copy/listen" "$copy/traind.sock"
    sqlite3 "$copy/traind.db" "update job set held_at = coalesce(held_at, 1.5) where state = 'queued'" # nothing starts
    { grep -v '^worker' "$copy/traind.conf"; echo "web_dir = $top_srcdir/web"; } >"$work/$1/traind.conf"
    sed -i '/^slots/d; /^require_token/d; $a slots = 2\nrequire_token = no\nrequests_per_second = 0' "$work/$1/traind.conf"
    TRAIND_PRESETS=$top_srcdir/etc/presets "$3/traind" --config "$work/$1/traind.conf" --state "$copy" --listen 127.0.0.1:0 >"$work/$1/log" 2>&1 &
    pid_of[$1]=$!
    until [ -s "$copy/listen" ] && curl -sf "$(<"$copy/listen")/healthz" >/dev/null; do
        sleep 0.1
        if [ $((waited += 1)) -gt 300 ] || ! kill -0 "${pid_of[$1]}" 2>/dev/null; then
            cat "$work/$1/log" >&2
            exit 2
        fi
    done
    url_of[$1]=$(<"$copy/listen")
    build_of[$1]=$(readelf -n "$3/traind" | sed -n 's/.*Build ID: //p')
}

paths() { # of every GET, with the ids that the state folder has
    local db=$work/old/state/traind.db jobs sweeps nodes path id
    jobs=$(sqlite3 "$db" 'select id from job')
    sweeps=$(sqlite3 "$db" 'select id from sweep')
    nodes=$(sqlite3 "$db" 'select name from node' 2>/dev/null || echo n1)
    jq -r '.paths | to_entries[] | select(.value.get) | .key' "$top_srcdir/schema/openapi.json" | while read -r path; do
        case $path in
            /v1/backup | /v1/throughput) continue ;; # the database's file; a window that ends now
            *'/jobs/{id}'*) for id in $jobs 999; do
                echo "${path//'{id}'/$id}"
            done ;;
            *'{id}'*) for id in $sweeps 999; do echo "${path//'{id}'/$id}"; done ;;
            *'{name}'*) for id in $nodes none; do echo "${path//'{name}'/$id}"; done ;;
            *) echo "$path" ;;
        esac
    done | while read -r path; do
        case $path in
            *'{step}'*) for id in 4 8 5; do echo "${path//'{step}'/$id}"; done ;;
            *) echo "$path" ;;
        esac
    done
    printf '%s\n' '/v1/jobs?limit=3' '/v1/jobs?limit=3&after=6' '/v1/jobs?state=failed' '/v1/jobs?where=seed%3D7' '/v1/jobs?tag=one' '/v1/jobs?q=label' \
        '/v1/jobs?sort=best_top1' '/v1/jobs?sort=-images_per_sec' '/v1/jobs?id=1,3' '/v1/jobs?group=state' '/v1/jobs?group=precision' '/v1/jobs?sweep=1' '/v1/jobs?bad=1' \
        '/v1/jobs/1/metrics?points=4' '/v1/jobs/1/metrics?names=loss,lr&from=2&to=6' '/v1/jobs/1/metrics?format=csv' '/v1/jobs/1/events?after=3&limit=5' \
        '/v1/jobs/1/log?tail=3' '/v1/jobs/1/evals?format=csv' '/v1/compare?ids=1,2' '/v1/compare?ids=1,2,3' '/v1/compare?ids=1,6,10' '/v1/compare?ids=1,999' \
        '/v1/sweeps/1?format=csv' '/v1/nowhere' '/v1/jobs/x'
}

# An answer without the moment it was made at, the daemon's own addresses and build id, and the place in its sources that MLPerf's log names.
masked() {
    sed -E 's/"lineno":[ ]*[0-9]+/"lineno":"masked"/g; s/"file":[ ]*"[^"]*mllog.c"/"file":"masked"/g
        s/^(traind_[a-z_]*(uptime|seconds|requests|bytes|connections|wal)[^ ]*|process_[^ ]*) .*/\1 masked/' |
        sed -E "s#$work/(old|new)/#WORK/#g; s#127\.0\.0\.1:[0-9]+#ADDRESS#g; s#\"(${build_of[old]}|${build_of[new]})\"#\"BUILD\"#g"
}

answer() { # NAME PATH: status, type and body
    curl -sS --max-time 5 --path-as-is -o "$work/$1/body" -w '%{http_code} %{content_type}\n' "${url_of[$1]}$2" 2>&1
    case $(head -c 2 "$work/$1/body" | od -An -tx1) in
        *'1f 8b'*) mkdir -p "$work/$1/tar" && tar -C "$work/$1/tar" -xzf "$work/$1/body" && (cd "$work/$1/tar" && find . -type f -exec sha256sum {} + | sort -k 2) && rm -r "$work/$1/tar" ;;
        *) masked <"$work/$1/body" | sed 's/[{,]/&\n/g' ;;
    esac
}

compare() { # STATE OLD NEW
    local path differ=0 count=0 good
    declare -gA url_of pid_of build_of
    work=$(mktemp -d "${TMPDIR:-/tmp}/traind-routes.XXXXXX")
    trap 'kill "${pid_of[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
    start old "$1" "$2"
    start new "$1" "$3"
    while read -r path; do
        answer old "$path" >"$work/old.answer"
        answer new "$path" >"$work/new.answer"
        count=$((count + 1))
        head -n 1 "$work/new.answer" >>"$work/statuses"
        diff -a -u --label "old $path" --label "new $path" "$work/old.answer" "$work/new.answer" | head -n 30
        [ "${PIPESTATUS[0]}" = 0 ] || differ=$((differ + 1))
    done < <(paths)
    echo "$count answers compared, $differ differ"
    good=$(grep -c '^200 ' "$work/statuses")
    echo "$good of them with status 200"
    [ "$good" -gt 100 ] && [ "$differ" = 0 ]
}

case ${1-} in
    --record) [ $# = 3 ] || usage
        record "$2" "$3" ;;
    *) [ $# = 3 ] || usage
        compare "$1" "$2" "$3" ;;
esac
