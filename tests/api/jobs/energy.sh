#!/usr/bin/env bash
# What a job took: measured, estimated or not known, of all attempts; prices; the plan's prediction.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
start_runs
half='{"workers_per_node": 1, "threads_per_worker": 1}'
cores=$("$top_builddir/tests/bin/train-worker" --self-check --json 2>/dev/null | jq .cores)
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d * d <= 1e-12 * b * b) }'; }

submit "steps=4 step_ms=20" "$half"
ok "a job without counters ends" wait_state "$id" succeeded
is "$(get "/v1/jobs/$id" | jq -c '[.energy_source, .joules, .joules_per_image, .kwh, .cost, .currency]')" '["none",null,null,null,null,null]' "nothing is known of its energy, and it is not zero"
ok "but its node-hours are" jq -e '.node_hours > 0 and .node_hours < 1' <<<"$(get "/v1/jobs/$id")"
none=$id

submit "steps=4 step_ms=5 joules=100" "$half"
ok "a job with counters ends" wait_state "$id" succeeded
job=$(get "/v1/jobs/$id")
is "$(jq -r .energy_source <<<"$job")" measured "it is measured"
share=$(sql "select node_share from job where id = $id")
ok "of this machine it has its slot, by the cores" awk -v s="$share" -v c="$cores" 'BEGIN { exit !(s > 0 && s <= 1 && s <= 1 / c + 0.5) }'
ok "of 100 J a step it is charged its share" near "$(jq .joules <<<"$job")" "$(jq -n "400 * $share")"
ok "an image took that part" near "$(jq .joules_per_image <<<"$job")" "$(jq -n "400 * $share / 16")"
ok "in kWh" near "$(jq .kwh <<<"$job")" "$(jq -n "400 * $share / 3600000")"
measured=$id

submit "steps=6 step_ms=5 joules=100 rank=0 at=4 signal=9 every=2 first=1" "$half" '{"restart": {"max": 1}}'
ok "a job that was restarted ends" wait_state "$id" succeeded
is "$(job "$id" attempt)" 2 "in its second attempt"
# steps 1 to 3 are known to have been told of; the fourth's event was written before the rank was killed
ok "both attempts count" near "$(job "$id" joules)" "$(jq -n "(400 + 400) * $share")"

submit "steps=2 joules=100 unread=1" "$half"
ok "a job with a machine that cannot be read ends" wait_state "$id" succeeded
is "$(job "$id" energy_source)" none "what was measured in part is not told as the whole"
part=$id

# Watts and prices, from the next look on.
printf '%s\n' "node_watts = 400" "price_per_kwh = 0.25" "price_per_node_hour = 2.5" "currency = EUR" >>"$work/traind.conf"
kill -HUP "$daemon"
estimated() { [ "$(job "$none" energy_source)" = estimated ]; }
ok "with node_watts it is estimated" eventually estimated
json=$(get "/v1/jobs/$none")
hours=$(jq .node_hours <<<"$json")
ok "by the time" near "$(jq .kwh <<<"$json")" "$(jq -n "0.4 * $hours")"
ok "and so is its price" near "$(jq .cost <<<"$json")" "$(jq -n "0.25 * 0.4 * $hours + 2.5 * $hours")"
is "$(jq -r .currency <<<"$json")" EUR "in its currency"
is "$(job "$measured" energy_source) $(job "$part" energy_source)" "measured estimated" "what was measured stays"
json=$(get "/v1/jobs/$measured")
ok "with the price of what was measured" near "$(jq .cost <<<"$json")" "$(jq '.kwh * 0.25 + .node_hours * 2.5' <<<"$json")"
is "$(get "/v1/compare?ids=$none,$measured" | jq -c '[.jobs[].energy_source]')" '["estimated","measured"]' "side by side"
trainctl="$top_builddir/trainctl --server $url"
like "$($trainctl show "$measured")" "energy +[0-9.e-]+ kWh \(measured\), [0-9.]+ J per image" "trainctl show"
like "$($trainctl show "$measured")" "cost +[0-9.e-]+ EUR" "with its cost"
like "$($trainctl compare "$none" "$measured")" "kWh" "trainctl compare"

# A prediction: the speed is told.
document='{"data": {"train": "synthetic", "train_images": 64}, "batch_per_worker": 4, "steps": 100, "model": {"image_size": 32, "classes": 10, "width": 0.0625}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}'
call -H 'Content-Type: application/json' -d "$document" /v1/plan
is "$(jq -c '.predicted | [.node_hours.value, .kwh.value, .cost.value]' <<<"$body")" '[null,null,null]' "without a speed nothing is predicted"
printf '%s' "$document" >"$work/predict.json"
predicted=$("$top_builddir/trainctl" predict --json --nodes 1,4 --node-speed 10 --node-watts 500 "$work/predict.json")
ok "trainctl predict tells the energy" jq -e '.points | all((.kwh.value - .node_hours.value * 0.5) | fabs < 1e-9)' <<<"$predicted"
like "$("$top_builddir/trainctl" predict --nodes 1 --node-speed 10 --node-watts 500 "$work/predict.json")" "KWH" "also as a table"
is "$("$top_builddir/trainctl" predict --json --nodes 1 --node-speed 10 "$work/predict.json" | jq -c '.points[0].kwh.value')" null "but not without watts"

# While it runs.
submit "steps=100000 step_ms=20 joules=1" "$half"
ok "a job runs" eventually has_events "$id" 3
metric() { get "/metrics" | sed -n "s/^$1{job=\"$id\"} //p"; }
grows() { awk -v a="$(metric traind_job_energy_joules_total)" -v b="$(metric traind_job_node_seconds_total)" 'BEGIN { exit !(a > 0 && b > 0) }'; }
ok "Prometheus counts its energy and its node-seconds" eventually grows
call -X POST "/v1/jobs/$id/cancel"
ok "it is cancelled" wait_state "$id" cancelled
ok "and keeps what it took" jq -e '.joules > 0 and .node_hours > 0' <<<"$(get "/v1/jobs/$id")"
hours=$(job "$id" node_hours)
is "$(job "$id" node_hours)" "$hours" "which does not grow any more"
printf 'price_per_kwh = cheap\n' >"$work/bad.conf"
like "$("$top_builddir/traind" --config "$work/bad.conf" --check-config 2>&1)" 'price_per_kwh must be a number from 0 to 1000000, not "cheap"' "a bad price is refused"
ok "the daemon stops in order" stop_daemon
done_testing
