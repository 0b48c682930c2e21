"""Listing jobs: traind beside Debian's slurmrestd, for tests/bench/run. Both hold the same number of waiting jobs and are asked over
their unix sockets by the same client. slurmrestd knows no pages, it answers with all jobs each time.
"""
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

import daemon

JOBS = 1000
CONNECTIONS = 4
SECONDS = 3


class Client:
    """A connection that asks again as soon as it is answered, for as long as `end` is ahead."""

    def __init__(self, path, target, end):
        self.path, self.end, self.socket = path, end, None
        self.request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n".encode()
        self.room, self.seconds, self.bytes = bytearray(1 << 20), [], 0

    def fill(self, size):
        got = self.socket.recv_into(self.room, size)
        if not got:
            raise ConnectionError(f"{self.path}: the answer ends early")
        return got

    def answer(self):
        """Bytes of the body of one answer."""
        if not self.socket:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(self.path)
        self.socket.sendall(self.request)
        head = b""
        while b"\r\n\r\n" not in head:
            head += bytes(self.room[:self.fill(4096)])
        head, body = head.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        if " 200 " not in lines[0] + " ":
            raise ConnectionError(f"{self.path}: {lines[0]}")
        total = int(fields["content-length"])
        left = total - len(body)
        while left:
            left -= self.fill(min(left, len(self.room)))
        if fields.get("connection", "").lower() == "close":
            self.close()
        return total

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def run(self):
        try:
            while (begin := time.monotonic()) < self.end:
                self.bytes = self.answer()
                self.seconds.append(time.monotonic() - begin)
        except OSError as e:
            self.error = str(e)
        self.close()

    error = None


def load(path, target):
    end = time.monotonic() + SECONDS
    clients = [Client(path, target, end) for _ in range(CONNECTIONS)]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        if client.error:
            raise OSError(client.error)
    seconds = sorted(s for client in clients for s in client.seconds)
    return {"per_sec": len(seconds) / SECONDS, "p99_ms": 1e3 * seconds[int(0.99 * (len(seconds) - 1))], "bytes": clients[0].bytes}


class Traind(daemon.Daemon):
    """A small store: what is listed are the jobs that wait."""

    def text(self):
        return f"traind, {JOBS} jobs waiting"

    def prepare(self):
        self.folder = tempfile.TemporaryDirectory(prefix="traind-bench-")
        self.write_settings()
        self.start()
        for _ in range(JOBS + 1):  # the first one runs
            self.get("/v1/jobs", daemon.DOCUMENT)

    def round(self):
        if not self.folder:
            self.prepare()
        path = self.path("state/traind.sock")
        self.answers.append({"page": load(path, "/v1/jobs?limit=50"), "all": load(path, f"/v1/jobs?state=queued&limit={JOBS}")})


class Slurmrestd:
    """Real munged, slurmctld and slurmrestd in a private folder, with held jobs."""

    def __init__(self, source):
        self.cluster = os.path.join(os.path.abspath(source), "../system/slurm/cluster.sh")
        self.folder, self.answers = None, []

    def text(self):
        return f"slurmrestd, {JOBS} jobs waiting"

    def prepare(self):
        self.folder = tempfile.TemporaryDirectory(prefix="slurm-bench-")
        os.chmod(self.folder.name, 0o755)
        self.state = os.path.join(self.folder.name, "state")
        done = subprocess.run(["bash", self.cluster, "start", self.state, "1"], capture_output=True, text=True,
                              env={**os.environ, "SLURM_CLUSTER_RESTD": "nobody"})
        if done.returncode:
            raise OSError((done.stdout + done.stderr).strip().splitlines()[-1])
        subprocess.run(f". {self.state}/env.sh; seq {JOBS} | xargs -P 4 -I@ sbatch -Q --hold -J run-@ --wrap 'sleep 1'", shell=True, check=True,
                       stdout=subprocess.DEVNULL)

    def round(self):
        if not self.folder:
            self.prepare()
        self.answers.append(load(os.path.join(self.state, "restd/socket"), "/slurm/v0.0.38/jobs"))

    def value(self, field):
        return max(answer[field] for answer in self.answers)

    def close(self):
        if self.folder:
            subprocess.run(["bash", self.cluster, "stop", self.state], check=False, stdout=subprocess.DEVNULL)
            self.folder.cleanup()
            self.folder = None


if __name__ == "__main__":
    import sys
    here = os.path.dirname(os.path.abspath(__file__))
    for peer in Traind(sys.argv[1], here), Slurmrestd(here):
        try:
            peer.round()
            print(peer.text(), json.dumps(peer.answers))
        finally:
            peer.close()
