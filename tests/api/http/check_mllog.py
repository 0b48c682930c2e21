"""Checks a log against the published rules of MLPerf training logs: check_mllog.py FILE."""
import json
import sys

rows = []
for number, line in enumerate(open(sys.argv[1]), 1):
    assert line.startswith(":::MLLOG "), f"line {number}: {line!r}"
    row = json.loads(line[len(":::MLLOG "):])
    assert list(row) == ["namespace", "time_ms", "event_type", "key", "value", "metadata"], f"line {number}: keys {list(row)}"
    assert isinstance(row["time_ms"], int) and row["time_ms"] > 1.5e12
    assert row["event_type"] in ("POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END")
    assert isinstance(row["metadata"]["file"], str) and row["metadata"]["lineno"] > 0
    rows.append(row)
assert [r["time_ms"] for r in rows] == sorted(r["time_ms"] for r in rows), "times rise"


def of(key):
    return [r for r in rows if r["key"] == key]


for key in ("submission_benchmark submission_org submission_division submission_status submission_platform cache_clear init_start "
            "init_stop run_start run_stop seed global_batch_size gradient_accumulation_steps train_samples eval_samples opt_name").split():
    assert len(of(key)) == 1, f"{key} is there {len(of(key))} times, not once"
name = of("opt_name")[0]["value"]
assert name in ("sgd", "lars")
for key in "base_learning_rate learning_rate_warmup_epochs momentum weight_decay".split():
    assert isinstance(of(f"{name}_opt_{key}")[0]["value"], (int, float)), key
order = [of(k)[0]["time_ms"] for k in "init_start init_stop run_start run_stop".split()]
places = [rows.index(of(k)[0]) for k in "init_start init_stop run_start run_stop".split()]
assert order == sorted(order) and places == sorted(places), "init_start, init_stop, run_start, run_stop in this order"
assert of("run_stop")[0]["metadata"]["status"] in ("success", "aborted")
assert of("submission_benchmark")[0]["value"] == "resnet" and of("submission_division")[0]["value"] in ("closed", "open")
aborted = of("run_stop")[0]["metadata"]["status"] == "aborted"


def epochs_of(key):
    return [r["metadata"]["epoch_num"] for r in of(key)]


for begin, end in (("epoch_start", "epoch_stop"), ("eval_start", "eval_stop")):
    for a, b in zip(of(begin), of(end)):
        assert a["event_type"] == "INTERVAL_START" and b["event_type"] == "INTERVAL_END" and a["time_ms"] <= b["time_ms"]
        assert a["time_ms"] >= of("run_start")[0]["time_ms"], f"{begin} in the run"
assert epochs_of("eval_start") == epochs_of("eval_stop")
assert epochs_of("epoch_start") == list(range(1, len(of("epoch_start")) + 1))
whole = epochs_of("epoch_stop")
assert whole == list(range(1, len(whole) + 1))
assert len(of("epoch_start")) - len(whole) in ((0, 1) if aborted else (0,)), "only a run that was broken off leaves an epoch open"
for a, b in zip(of("epoch_stop"), of("epoch_start")[1:]):
    assert a["time_ms"] == b["time_ms"], "an epoch begins where the one before ends"
if of("eval_accuracy") and not aborted:
    assert rows.index(of("eval_accuracy")[0]) < rows.index(of("run_stop")[0]), "run_stop is behind an evaluation"
schedule = [r["key"] for r in rows if "_learning_rate_decay_" in r["key"]]
assert schedule in ([], [f"{name}_opt_learning_rate_decay_poly_power", f"{name}_opt_learning_rate_decay_steps"]), schedule
assert len(of("eval_accuracy")) == len(of("eval_start"))
for r in of("eval_accuracy"):
    assert 0 <= r["value"] <= 1 and r["metadata"]["epoch_num"] >= 1
print(json.dumps({"epochs": len(whole), "open": len(of("epoch_start")) - len(whole), "evals": len(of("eval_accuracy")), "batch": of("global_batch_size")[0]["value"],
                  "samples": of("train_samples")[0]["value"], "status": of("run_stop")[0]["metadata"]["status"]}))
