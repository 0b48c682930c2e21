"""Checks a log against the published rules of MLPerf training logs, mllog_rules.txt, and those of the order of its lines: check_mllog.py FILE."""
import json
import os
import sys

rows = []
for number, line in enumerate(open(sys.argv[1]), 1):
    assert line.startswith(":::MLLOG "), f"line {number}: {line!r}"
    row = json.loads(line[len(":::MLLOG "):])
    assert list(row) == ["namespace", "time_ms", "event_type", "key", "value", "metadata"], f"line {number}: keys {list(row)}"
    assert isinstance(row["time_ms"], int) and row["time_ms"] > 1.5e12
    assert row["event_type"] in ("POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END")
    assert row["metadata"]["file"] == "daemon/export/mllog.c" and row["metadata"]["lineno"] > 0
    rows.append(row)
assert [r["time_ms"] for r in rows] == sorted(r["time_ms"] for r in rows), "times rise"


def of(key):
    return [r for r in rows if r["key"] == key]


def is_right(value, wanted):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"-": True, "text": isinstance(value, str) and value != "", "number": number, ">0": number and value > 0, ">=0": number and value >= 0,
            "list": isinstance(value, list) and len(value) > 0}.get(wanted, isinstance(value, str) and value in wanted.split("|"))


# A run that was broken off may lack a whole epoch; one that never evaluated has no accuracy. Other schedules than poly and step have no keys.
name = of("opt_name")[0]["value"]
keys = {row["key"] for row in rows}
kinds = {"all", "closed", name}
kinds |= {"whole"} if of("run_stop") and of("run_stop")[0]["metadata"]["status"] == "success" else set()
kinds |= {"evaluated"} if of("eval_start") else set()
kinds |= {kind for kind, sign in (("poly", "learning_rate_decay_p"), ("step", "learning_rate_decay_b")) if any(sign in key for key in keys)}
for line in open(os.path.join(os.path.dirname(sys.argv[0]), "mllog_rules.txt")):
    if line.startswith("#"):
        continue
    key, count, value, metadata, wanted_of = line.split()
    there = of(key)
    if set(wanted_of.split(",")) <= kinds:
        assert len(there) == 1 or (count == "1+" and there), f"{key} is there {len(there)} times, not {count}"
    for r in there:
        assert is_right(r["value"], value), f"the value of {key} is {r['value']!r}, not {value}"
        assert metadata == "-" or metadata in r["metadata"], f"{key} has no {metadata}"
assert len(of("seed")) == 1
assert all(r["value"] >= 0 for r in rows if r["key"].endswith("decay_steps")), "a run that is shorter than its warm-up does not decay"
order = [of(k)[0]["time_ms"] for k in "init_start init_stop run_start run_stop".split()]
places = [rows.index(of(k)[0]) for k in "init_start init_stop run_start run_stop".split()]
assert order == sorted(order) and places == sorted(places), "init_start, init_stop, run_start, run_stop in this order"
assert of("run_stop")[0]["metadata"]["status"] in ("success", "aborted")
minutes = 240 if of("submission_division")[0]["value"] == "open" else 30
assert order[1] - order[0] < minutes * 60000, f"the start takes less than {minutes} minutes"
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
