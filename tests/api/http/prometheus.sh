#!/usr/bin/env bash
# GET /metrics: read by Prometheus' own parser, while a job runs.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
python=${PYTHON_WITH_DEBIAN:-/usr/bin/python3}
"$python" -c 'import prometheus_client' 2>/dev/null || skip_all "python3-prometheus-client is not installed"
start_runs
submit "steps=100000 step_ms=20"
wait_state "$id" running
eventually has_events "$id" 2
call /healthz
call /nothing/here
call /metrics
want 200 "metrics"
like "$headers" '^Content-Type: text/plain; version=0.0.4' "their type"
cp "$work/body" "$work/metrics"

# NAME{LABELS as key=value,...}: the value as the parser reads it
value() {
    "$python" - "$work/metrics" "$1" "${2:-}" <<'END'
import sys
from prometheus_client.parser import text_string_to_metric_families as parse
labels = dict(pair.split("=") for pair in sys.argv[3].split(",") if pair)
for family in parse(open(sys.argv[1]).read()):
    assert family.documentation and family.type != "unknown", family
    for sample in family.samples:
        if sample.name == sys.argv[2] and sample.labels.items() >= labels.items():
            print(f"{sample.value:.12g}")
END
}
is "$(value traind_jobs state=running)" 1 "jobs by state"
is "$(value traind_jobs state=failed)" 0 "also where there are none"
is "$(value traind_slots) $(value traind_slots_used)" "2 2" "slots"
like "$(value traind_job_step job="$id")" '^[1-9][0-9]*$' "a running job's step"
like "$(value traind_job_loss job="$id")" '^[0-9.e-]+$' "its loss"
is "$(value traind_job_images_per_second job="$id")" 100 "its throughput"
like "$(value traind_ingest_lag_bytes job="$id")" '^[0-9]+$' "how far reading its events is behind"
is "$(value traind_build_info | head -n 1)" 1 "the version"
like "$(value traind_http_requests_total route=/healthz,status=200)" '^[1-9]' "requests by route and status"
is "$(value traind_http_requests_total route=other,status=404)" 1 "also those of no route"
is "$(value traind_http_request_duration_seconds_bucket "route=/healthz,le=+Inf")" \
    "$(value traind_http_requests_total route=/healthz,status=200)" "their durations are a histogram"
is "$(promtool check metrics <"$work/metrics" 2>&1)" "" "promtool has nothing to say"
call -X POST "/v1/jobs/$id/cancel"
ok "it ends" wait_state "$id" cancelled
done_testing
