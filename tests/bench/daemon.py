"""The daemon under load, for tests/bench/run: a store with 100,000 finished jobs, the real traind on loopback, wrk as its clients.

Answers are in the units of the rows. The launcher is a script, as no training may share the cores: it puts a prepared spool of step
events in its place and sleeps, so that all later submissions stay in the queue.
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
import time
import urllib.request

JOBS = 100_000
EVENTS = 300_000
STEPS = 10_000_000
CONNECTIONS, SUBMITTERS = 16, 32
SECONDS = 4
START_SECONDS = 300
DOCUMENT = {"name": "bench", "data": {"train": "synthetic"}, "cluster": {"workers_per_node": 1, "threads_per_worker": 1}}

LAUNCHER = """#!/bin/sh
echo $$ >>{folder}/launchers
mv {folder}/spool "$TRAIND_ATTEMPT_DIR/events.jsonl"
exec sleep 600
"""

SUBMIT = """wrk.method = "POST"
wrk.body = [[{document}]]
wrk.headers["Content-Type"] = "application/json"
"""

FINISHED = """
with recursive n(i) as (select 2 union all select i + 1 from n where i < {jobs})
insert into job (id, name, state, reason, spec, plan, attempt, created_at, started_at, finished_at, queued_at, slots, run_dir, exit_code,
                 train_steps, global_batch, step, epoch, loss, lr, images_per_sec, ttt_seconds, top1, top5)
select i, 'run-' || i, 'succeeded', 'done', spec, plan, 1, created_at - 1e6 + 9.3 * i, created_at - 1e6 + 9.3 * i + 0.25,
       created_at - 1e6 + 9.3 * i + 9.123456, created_at - 1e6 + 9.3 * i, slots, rtrim(run_dir, '1') || i, 0, train_steps, global_batch,
       train_steps, 90, round(1.0 / i + 0.7, 9), 0.00005, round(800 + 1.0 / i, 6), 8.873456, round(0.75 + 0.1 / i, 9), round(0.92 + 0.1 / i, 9)
from job, n where id = 1
"""

STATES = """
insert into job_event (job_id, attempt, t, type, body)
select job.id, 1, created_at, 'state', '{"state":"' || value || '","reason":"done"}'
from job, json_each('["queued","starting","running","succeeded"]') where job.id > 1
"""

SERIES = """
pragma synchronous = off;
insert into metric_unfilled values (1);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {steps})
insert into step_metric (job_id, step, epoch, t, loss, lr, images_per_sec, step_ms, data_ms, forward_ms, backward_ms, comm_ms, optim_ms,
    grad_norm, slowest_rank, top1)
    select 1, i, i / 5004.0, 1.7e9 + i, round(7.0 / i, 9), 0.1, round(211.5 + i % 97 / 7.0, 6), 240.1, 0.1, 80.5, 150.2, 3.0, 5.5,
    round(1.0 + i % 101 / 9.0, 8), i % 2, round(i / {steps}.0, 6) from n;
"""


class Daemon:
    """Runs once a round; value() is the best of the rounds, as others only slow it down."""

    def __init__(self, build, source):
        self.traind, self.source = os.path.abspath(f"{build}/traind"), os.path.abspath(source)
        self.folder, self.process, self.url, self.answers = None, None, None, []

    def text(self):
        return f"traind, {JOBS} jobs in its store"

    # ---------------------------------------------------------------- the daemon

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self):
        """Milliseconds until it answers."""
        if os.path.exists(self.path("state/listen")):
            os.unlink(self.path("state/listen"))
        begin = time.monotonic()
        with open(self.path("log"), "a") as log:
            environment = {**os.environ, "TRAIND_PRESETS": f"{self.source}/../../etc/presets"}
            self.process = subprocess.Popen([self.traind, "--config", self.path("traind.conf"), "--state", self.path("state"), "--listen",
                                             "127.0.0.1:0"], stderr=log, env=environment)
        while not os.path.exists(self.path("state/listen")):
            if self.process.poll() is not None or time.monotonic() - begin > START_SECONDS:
                raise OSError("traind does not start: " + self.last_words())
            time.sleep(0.001)
        with open(self.path("state/listen")) as file:
            self.url = file.read().strip()
        self.get("/healthz")
        return 1000 * (time.monotonic() - begin)

    def last_words(self):
        with open(self.path("log")) as log:
            return (log.read().splitlines() or ["it says nothing"])[-1]

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
            self.process = None
        if os.path.exists(self.path("launchers")):
            with open(self.path("launchers")) as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.unlink(self.path("launchers"))

    def get(self, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        with urllib.request.urlopen(self.url + path, body, timeout=60) as answer:
            return json.load(answer)

    def peak_memory_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s*(\d+)", status.read()).group(1)) * 1024 / 1e6

    # ---------------------------------------------------------------- the store

    def write_settings(self):
        with open(self.path("launcher"), "w") as file:
            file.write(LAUNCHER.format(folder=self.folder.name))
        os.chmod(self.path("launcher"), 0o755)
        with open(self.path("submit.lua"), "w") as file:
            file.write(SUBMIT.format(document=json.dumps(DOCUMENT)))
        with open(self.path("traind.conf"), "w") as file:
            file.write(f"mpirun = {self.path('launcher')}\nworker = {self.path('launcher')}\nslots = 1\nrequire_token = no\n")

    def prepare(self):
        self.folder = tempfile.TemporaryDirectory(prefix="traind-bench-")
        self.write_settings()
        self.start()
        self.get("/v1/jobs", DOCUMENT)
        self.stop()
        with sqlite3.connect(self.path("state/traind.db")) as db:
            db.execute("update job set state = 'failed', finished_at = created_at")
            db.execute(FINISHED.format(jobs=JOBS))
            db.execute(STATES)
        db.close()

    def write_spool(self):
        with open(self.path("spool"), "w") as spool:
            for i in range(1, EVENTS + 1):
                spool.write(f'{{"seq": {i}, "t": {1.7e9 + i / 8:.6f}, "type": "step", "step": {i}, "epoch": {i / 5005:.9g}, '
                            f'"loss": {0.7 + 6.1 / i:.9g}, "lr": {0.4 - i * 1e-6:.9g}, "images_per_sec": {801 + 7 / i:.9g}, "step_ms": 125.4321, '
                            f'"data_ms": 0.0321{i % 1000}, "forward_ms": 38.1{i % 997}, "backward_ms": 76.4{i % 991}, "comm_ms": 5.31{i % 983}, '
                            f'"optim_ms": 3.21{i % 977}, "grad_norm": {1 + 9 / i:.9g}, "slowest_rank": {i % 2}, "rank_busy_ms": [118.2, 117.9]}}\n')

    def forget_round(self):
        with sqlite3.connect(self.path("state/traind.db")) as db:
            db.execute("pragma foreign_keys = on")
            db.execute("delete from job where id > ?", (JOBS,))
            for table in "job_event", "step_metric", "metric_bucket":  # without a foreign key
                db.execute(f"delete from {table} where job_id > ?", (JOBS,))
        db.close()

    # ---------------------------------------------------------------- measuring

    def ingest(self):
        """Events a second, from the whole spool in its place to the last of them in the store."""
        job = self.get("/v1/jobs", DOCUMENT)["id"]
        begin = time.monotonic()
        while os.path.exists(self.path("spool")) and time.monotonic() - begin < 10:
            time.sleep(0.001)
        begin = time.monotonic()
        while self.get(f"/v1/jobs/{job}")["step"] < EVENTS:
            if time.monotonic() - begin > 90:
                raise OSError(f"{EVENTS} events took more than 90 s")
            time.sleep(0.02)
        return EVENTS / (time.monotonic() - begin)

    def load(self, path, connections, *script):
        done = subprocess.run(["wrk", "--latency", "-t1", f"-c{connections}", f"-d{SECONDS}s", *script, self.url + path], text=True,
                              capture_output=True, check=True).stdout
        if "Non-2xx" in done or "Socket errors" in done:
            raise OSError(f"{path}: {done}")
        number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", done).groups()
        return {"per_sec": float(re.search(r"Requests/sec:\s+([\d.]+)", done).group(1)),
                "p99_ms": float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]}

    def round(self):
        if not self.folder:
            self.prepare()
        self.write_spool()
        answer = {"start_ms": self.start()}
        answer["list"] = self.load("/v1/jobs?limit=50", CONNECTIONS)
        answer["show"] = self.load(f"/v1/jobs/{JOBS // 2}", CONNECTIONS)
        answer["ingest_per_sec"] = self.ingest()
        answer["submit"] = self.load("/v1/jobs", SUBMITTERS, "-s", self.path("submit.lua"))
        answer["memory_mb"] = self.peak_memory_mb()
        self.stop()
        self.forget_round()
        self.answers.append(answer)

    def value(self, field):
        values = []
        for answer in self.answers:
            for name in field.split("."):
                answer = answer[name]
            values.append(answer)
        return max(values) if field.endswith("per_sec") or field == "memory_mb" else min(values)

    def close(self):
        if self.folder:
            self.stop()
            self.folder.cleanup()
            self.folder = None


class Series(Daemon):
    """One job with a very long series, drawn with 1,000 points of each metric."""

    def text(self):
        return f"traind, {STEPS} steps of a job"

    def prepare(self):
        self.folder = tempfile.TemporaryDirectory(prefix="traind-bench-")
        self.write_settings()
        self.start()
        self.get("/v1/jobs", DOCUMENT)
        self.stop()
        with sqlite3.connect(self.path("state/traind.db")) as db:
            db.executescript(SERIES.format(steps=STEPS))
        db.close()
        self.start()  # makes the coarser scales, once

    def time(self, query):
        """Milliseconds of the slowest of some answers but one."""
        times = []
        for _ in range(20):
            begin = time.monotonic()
            if self.get(f"/v1/jobs/1/metrics?points=1000{query}")["rows"] < STEPS // 10:
                raise OSError(f"the series is not whole: {query}")
            times.append(1000 * (time.monotonic() - begin))
        return sorted(times)[-2]

    def round(self):
        if not self.folder:
            self.prepare()
        self.answers.append({"all_ms": self.time(""), "one_ms": self.time("&names=loss"), "part_ms": self.time(f"&from={STEPS // 8 + 5}")})
