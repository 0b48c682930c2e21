#!/usr/bin/env bash
# profile.steps: the Chrome trace and the table of layers of a short run on two ranks.
# shellcheck source=tests/system/lib.sh
. "${top_srcdir:?run it by make check}/tests/system/lib.sh"
small_job '.model |= del(.arch) + {width: 0.25} | .data.eval = "\($data)/validation" | .steps = 9 | .eval.batch = 25 |
    .checkpoint.disable = true | .profile.steps = [2, 3]'

# spans JQ: of the trace's complete events
spans() {
    jq -c "[.[] | select(.ph == \"X\")] | $1" "$trace"
}

worker 2 "$work/small.json" "$work/run"
is $? 0 "a traced run ends well"
trace=$work/run/attempt-1/trace.json
events=$work/run/attempt-1/events.jsonl
is "$(jq -c 'type, all(.[]; .ph == "X" or .ph == "M")' "$trace" | tr '\n' ' ')" '"array" true ' "the trace is an array of events"
is "$(spans 'all(has("ts") and has("dur") and has("pid") and has("tid") and has("name") and .dur >= 0)')" true \
    "each with its times and its place"
is "$(spans '[.[] | select(.cat == "step") | .pid] | sort')" '[0,0,1,1]' "two steps of both ranks"
is "$(jq -c '[.[] | select(.name == "process_labels") | .args | .clock_error_us >= 0 and .clock_error_us < 1e5 and .spans_dropped == 0]' "$trace")" \
    '[true,true]' "clocks are aligned, to a stated error"
is "$(spans '[.[] | select(.cat == "forward" and (.name | test("conv|downsample"))) | .name] | group_by(.) | [length, (map(length) | unique)]')" \
    '[53,[4]]' "53 convolutions forward: twice on each rank"
is "$(spans '[.[] | select(.cat == "backward" and (.name | test("conv|downsample"))) | .name] | group_by(.) | [length, (map(length) | unique)]')" \
    '[53,[4]]' "and backward"
is "$(spans '[.[] | select(.cat == "forward" and .name == "layer1.0.conv2") | .args.gflop] | unique')" '[0.0024]' \
    "with their work: 2 x 8 images x 8 x 8 pixels x 16 x 16 x 9"
is "$(spans 'map(select(.args.gemm_ms)) | length > 400 and all((.args.im2col_ms // 0) + .args.gemm_ms + (.args.bn_ms // 0) | . > 0) and
    all(.dur * 1.01 + 20 > 1000 * ((.args.im2col_ms // 0) + .args.gemm_ms + (.args.bn_ms // 0)))')" true "with im2col, products and batch norm in numbers of their own"
is "$(spans 'map(select(.args.gemm_ms)) | all(.args.largest_share >= 0.999)')" true "and the largest share of a thread"
is "$(spans 'map(select(.cat == "forward" and (.name | test("conv|downsample"))) | {name, i: (.args.im2col_ms != null)}) | unique |
    [(map(select(.i)) | length > 15), all(.[]; .i or (.name | test("conv[13]|downsample")))]')" '[true,true]' "im2col is where a 3x3 or a stride needs it"
is "$(spans 'map(select(.cat == "forward" and (.name | test("bn"))) | .name) | unique | length')" 49 "batch norm's passes are spans"
is "$(spans 'map(select(.cat == "all-reduce")) | (map(.args.bytes // 0) | add) / 4 | . > 23.5e6 and . < 25.9e6')" true \
    "all gradients' bytes are in the all-reduce's pieces"
is "$(spans 'map(select(.cat == "decode")) | length > 0 and (map(.tid) | unique) != [0]')" true "decoding is in it, on its own threads"
is "$(spans '[.[] | select(.name == "optimizer") | .pid] | sort')" '[0,0,1,1]' "the optimiser too"
is "$(spans '[.[] | select(.name == "evaluation")] | length')" 0 "an evaluation long after the steps is not"

# by thread in order of begin: each span is within the open one, or after it (a nanosecond of rounding)
is "$(spans 'group_by([.pid, .tid]) | map(sort_by(.ts, -.dur) | reduce .[] as $s ({open: [], ok: true};
    .open |= map(select(. > $s.ts + 0.002)) | .ok = (.ok and all(.open[]; . >= $s.ts + $s.dur - 0.002)) |
    .open += [$s.ts + $s.dur]) | .ok) | all')" true "spans nest"
is "$(jq -n --slurpfile t "$trace" --slurpfile e "$events" \
    '[$t[0][] | select(.cat == "step" and .pid == 0) | .dur / 1000] as $d | [$e[] | select(.type == "step" and (.step == 2 or .step == 3)) | .step_ms] as $s |
     [range(2) | ($d[.] / $s[.] - 1 | fabs) < 0.02] | all')" true "a step is as long as its event says"
is "$(spans 'map(select(.cat == "step")) as $steps | map(select(.cat == "phase") | . as $p |
    select(any($steps[]; .pid == $p.pid and .ts <= $p.ts and $p.ts + $p.dur <= .ts + .dur + 0.002)) | .dur) | add /
    ($steps | map(.dur) | add) | . > 0.95 and . < 1.0001')" true "and its phases fill it"

table=$work/run/attempt-1/layers.txt
is "$(grep -cE '^(conv1|layer[1-4]\.[0-9]\.(conv[123]|downsample\.0)) +([0-9.]+ +[0-9.]+ +([0-9]+ %|-) +[0-9.]+ +[0-9.]+ +([0-9]+ %|-)( +[0-9]+ %){4} +[0-9.]+ *){2}$' "$table")" 53 \
    "the table has a line a convolution, with time, GFLOP/s, share of peak, MB, GB/s, share of STREAM, its parts and how even the threads were"
is "$(grep -cE '^(bn1|layer[1-4]\.[0-9]\.bn[123]|maxpool) +[0-9.]+ +- +- +[0-9.]+ +[0-9.]+ ' "$table")" 50 "batch norm's passes and the pooling have MB and GB/s without GFLOP/s"
# (read w, write z) x 8 images x 8 x 8 pixels x 16 channels x 4 bytes, and 9 x 16 x 16 weights
is "$(spans '[.[] | select(.cat == "forward" and .name == "layer1.0.conv2") | .args.bytes] | unique')" "[$((2 * 8 * 8 * 8 * 16 * 4 + 9 * 16 * 16 * 4))]" \
    "the trace has the bytes of a layer: its input, output and weights"
# of three decimals, which a layer that waited long for a processor rounds to 0
is "$(spans 'map(select(.args.gb_per_sec and .cat == "forward")) | length > 100 and all(.args.gb_per_sec * .dur * 1000 / .args.bytes - 1 | fabs < 0.1)')" true "and their rate"
is "$(spans 'map(select(.cat == "step") | .args.images) | unique')" "[$(jq '.batch_per_worker * (.accumulate_steps // 1)' "$work/small.json")]" "a step has the number of its images"
like "$(tail -n 1 "$table")" '^all +[0-9.]+ ' "and closes with their sum"

trial 2 last '.profile.steps = [5, 9] | .steps = 5 | .accumulate_steps = 1'
trace=$work/last/attempt-1/trace.json
is "$(spans '[(map(select(.cat == "step")) | length), (map(select(.name == "evaluation")) | length), (map(select(.cat == "predict" and .name == "conv1")) | length > 0)]')" \
    '[2,2,true]' "the last step's trace holds the evaluation after it"

trial 2 never '.steps = 5 | .profile.steps = [8, 9] | .data.eval = null'
is $? 0 "steps that never come do no harm"
like "$(jq -r 'select(.type == "warning") | .message' "$work/never/attempt-1/events.jsonl")" 'profile\.steps \[8, 9\]' "and are warned of"

done_testing
