#!/usr/bin/env python3
"""Hours of a daemon's work: submissions, cancels, live streams, pages, short trainings; started by soak.sh.

Memory, descriptors, threads, the database without the audit log, its write-ahead log and the latency of a request are sampled. Behind a warm-up the samples are put together into
blocks, so that neighbours do not count as independent; of the blocks' means the least-squares slope and its standard error are printed, and a slope
beyond three of its errors fails, where it comes to more over the run than the quantity's grain. In less than 20 s caches still fill: only
a rise of descriptors and threads by ten times their grain fails then. TAP.
"""
import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

WARM_UP = 0.4  # of the time
BLOCKS = 16
# name: unit, what a rise over the run must exceed to count
QUANTITIES = {'resident memory': ('KiB', 1024), 'descriptors': ('', 2), 'threads': ('', 1), 'database': ('KiB', 512), 'its log': ('KiB', 512),
              'latency of a list': ('ms', 5)}

JOB = {'name': 'soak', 'cluster': {'workers_per_node': 1, 'threads_per_worker': 1, 'bind': 'none'},
       'data': {'train': 'synthetic', 'train_images': 64}, 'batch_per_worker': 4, 'restart': {'max': 0}, 'checkpoint': {'disable': True},
       'model': {'arch': 'resnet18', 'width': 0.25, 'image_size': 32, 'classes': 10, 'stem': 'small', 'winograd': False, 'gemm': 'own'}}


def call(url, body=None, method=None, seconds=60):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data, method=method), timeout=seconds) as answer:
        return answer.read()


class Soak:
    def __init__(self, options):
        self.options = options
        self.state = f'{options.work}/state'
        self.ends = False
        self.counts = {}
        self.errors = []
        self.lock = threading.Lock()

    def start(self):
        with open(f'{self.options.work}/traind.conf', 'w') as file:
            # Few runs are kept, so that the database has a size to stay at.
            file.write(f'worker = {self.options.worker}\nslots = 2\nrequire_token = no\nrestart_delay_seconds = 0\ncancel_grace_seconds = 2\n'
                       f'keep_runs = {self.options.keep}\nnode_check_seconds = 0\n')
        self.daemon = subprocess.Popen([self.options.traind, '--config', f'{self.options.work}/traind.conf', '--state', self.state, '--listen', '127.0.0.1:0'],
                                       stderr=open(f'{self.options.work}/daemon.log', 'w'))
        for _ in range(6000):
            if os.path.exists(f'{self.state}/listen'):
                break
            time.sleep(0.1)
        with open(f'{self.state}/listen') as file:
            self.url = file.read().strip()

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def again(self, what, act, pause):
        """One kind of client: acts again and again, and counts; what the daemon may well answer is no error."""
        draw = random.Random(what)
        while not self.ends:
            try:
                act(draw)
                self.count(what)
            except urllib.error.HTTPError as error:
                if error.code >= 500:
                    self.errors.append(f'{what}: {error.code} {error.read()[:200]!r}')
            except OSError as error:
                if not self.ends:
                    self.errors.append(f'{what}: {error}')
            time.sleep(draw.random() * 2 * pause)

    def submit(self, draw):
        if len(json.loads(call(f'{self.url}/v1/jobs?state=queued&limit=20'))['jobs']) > 8:
            return
        call(f'{self.url}/v1/jobs', {**JOB, 'steps': draw.randrange(1, 6)})

    def cancel(self, draw):
        jobs = json.loads(call(f'{self.url}/v1/jobs?state=queued,starting,running&limit=20'))['jobs']
        if jobs:
            call(f'{self.url}/v1/jobs/{draw.choice(jobs)["id"]}/cancel', method='POST')

    def page(self, draw):
        jobs = json.loads(call(f'{self.url}/v1/jobs?limit=20'))['jobs']
        paths = ['/', '/app.js', '/v1/presets', '/v1/nodes', '/metrics', '/openapi.json', '/v1/audit', '/v1/throughput?seconds=60&points=20']
        if jobs:
            number = draw.choice(jobs)['id']
            paths += [f'/v1/jobs/{number}', f'/v1/jobs/{number}/metrics?points=50', f'/v1/jobs/{number}/events?limit=100', f'/v1/jobs/{number}/evals']
        call(self.url + draw.choice(paths))

    def stream(self, draw):
        request = urllib.request.Request(f'{self.url}/v1/events', headers={'Accept': 'text/event-stream'})
        end = time.monotonic() + draw.random() * 3
        with urllib.request.urlopen(request, timeout=30) as answer:
            while time.monotonic() < end and not self.ends:
                answer.readline()

    def fill(self, jobs):
        """SQLite keeps up to 2 MB of pages for each of its connections: a small database, and with it what is kept, would grow for hours."""
        def some(_):
            for _ in range(jobs // 4):
                number = json.loads(call(f'{self.url}/v1/jobs', {**JOB, 'steps': 1}))['id']
                call(f'{self.url}/v1/jobs/{number}/cancel', method='POST')
                call(f'{self.url}/v1/jobs?limit=100')
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            list(threads.map(some, range(4)))

    def audit_kib(self):
        """The audit log is kept for two years, so it grows with each submission."""
        with contextlib.closing(sqlite3.connect(f'file:{self.state}/traind.db?mode=ro', uri=True)) as db:
            return db.execute("select ifnull(sum(pgsize), 0) from dbstat where name = 'audit'").fetchone()[0] / 1024

    def sample(self):
        with open(f'/proc/{self.daemon.pid}/status') as file:
            status = dict(line.split(':', 1) for line in file)

        def kib(name):
            try:
                return os.path.getsize(f'{self.state}/{name}') / 1024
            except OSError:
                return 0
        took = []
        for _ in range(5):
            begin = time.monotonic()
            call(f'{self.url}/v1/jobs?limit=20')
            took.append(1000 * (time.monotonic() - begin))
        return (float(status['VmRSS'].split()[0]), len(os.listdir(f'/proc/{self.daemon.pid}/fd')), float(status['Threads']), kib('traind.db') - self.audit_kib(),
                kib('traind.db-wal'), sorted(took)[1])

    def run(self):
        self.start()
        self.fill(self.options.fill)
        clients = [('submissions', self.submit, 0.3), ('cancels', self.cancel, 2), ('pages', self.page, 0.05), ('pages', self.page, 0.05),
                   ('streams', self.stream, 0.2), ('streams', self.stream, 0.2)]
        threads = [threading.Thread(target=self.again, args=client, daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        begin, rows = time.monotonic(), []
        while time.monotonic() - begin < self.options.seconds and self.daemon.poll() is None:
            rows.append((time.monotonic() - begin,) + self.sample())
            time.sleep(min(1, self.options.seconds / 200))
        self.ends = True
        for thread in threads:
            thread.join(60)
        self.died = self.daemon.poll()
        self.daemon.send_signal(signal.SIGTERM)
        self.status = self.daemon.wait(120)
        return rows


def slope(points):
    """Of the means of blocks: slope, and its standard error."""
    size = len(points) / BLOCKS
    blocks = [points[int(i * size):int((i + 1) * size)] for i in range(BLOCKS)]
    blocks = [(sum(t for t, _ in b) / len(b), sum(v for _, v in b) / len(b)) for b in blocks if b]
    n, mt = len(blocks), sum(t for t, _ in blocks) / len(blocks)
    mv = sum(v for _, v in blocks) / n
    stt = sum((t - mt) ** 2 for t, _ in blocks)
    b = sum((t - mt) * (v - mv) for t, v in blocks) / stt
    rest = sum((v - mv - b * (t - mt)) ** 2 for t, v in blocks)
    return b, math.sqrt(rest / (n - 2) / stt), mv


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument('--seconds', type=float, default=20)
    parse.add_argument('--keep', type=int, default=20)
    parse.add_argument('--fill', type=int, default=0, help='jobs that are submitted and cancelled first')
    for name in ('traind', 'worker', 'work'):
        parse.add_argument(f'--{name}', required=True)
    options = parse.parse_args()
    soak = Soak(options)
    rows = soak.run()
    late = [row for row in rows if row[0] > WARM_UP * options.seconds]
    failed = number = 0

    def check(good, name):
        nonlocal failed, number
        number += 1
        failed += not good
        print(f'{"" if good else "not "}ok {number} - {name}', flush=True)
    span = late[-1][0] - late[0][0]
    for column, (name, (unit, grain)) in enumerate(QUANTITIES.items(), 1):
        b, error, mean = slope([(row[0], row[column]) for row in late])
        if options.seconds < 20:
            grain = 10 * grain if name in ('descriptors', 'threads') else math.inf
        check(b <= 3 * error or b * span <= grain,
              f'{name}: {mean:.1f} {unit}, slope {3600 * b:.1f} +- {3600 * error:.1f} {unit} an hour, {b * span:.1f} {unit} over {span:.0f} s')
    check(soak.died is None and soak.status == 0, f'the daemon lived, and ended in order: {soak.died} {soak.status}')
    check(not soak.errors, f'no request failed by the daemon\'s fault: {soak.errors[:3]}')
    check(all(soak.counts.get(what) for what in ('submissions', 'pages', 'streams')), f'all were at work: {json.dumps(soak.counts)}')
    print(f'1..{number}')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
