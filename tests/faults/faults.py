#!/usr/bin/env python3
"""Faults drawn from a seed against running daemons with real training jobs; started by faults.sh in a mount namespace of its own.
What differs on several hosts and with Slurm is in cluster.py.

Each lane is a daemon with a state folder on a tmpfs of its own, and one job at a time: a small ResNet on real shards, two ranks, which evaluates
and writes checkpoints. A fault is a kind, a moment of the run and what else it needs, all from the seed; then the job must end in a right
state, with the weights, losses and evaluations of the undisturbed run bit for bit, the cause named, and nothing left over. Prints TAP, a line
a kind, and each finding with the number that repeats it: SEED=... FAULT=number.
"""
import argparse
import collections
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

LIMIT = 600  # seconds that anything may take on a busy machine
STEPS = 12
STALL_SECONDS = 15  # a machine busy with several lanes may let a step take as long as a third of it
TMPFS_MB = 320


class Finding(Exception):
    pass


def expect(condition, words):
    if not condition:
        raise Finding(words)


def until(condition, seconds=LIMIT, every=0.01):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every)
    return condition()


def shell(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def tried(*words):
    return subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def processes_of(folder):
    """{pid: rank or None} of all that was started for an attempt below the folder; zombies have no environment."""
    found = {}
    mark = b'TRAIND_ATTEMPT_DIR=' + folder.encode()
    for name in os.listdir('/proc'):
        if not name.isdigit():
            continue
        try:
            with open(f'/proc/{name}/environ', 'rb') as file:
                environ = file.read().split(b'\0')
        except OSError:
            continue
        if any(word.startswith(mark) for word in environ):
            rank = [word[21:] for word in environ if word.startswith(b'OMPI_COMM_WORLD_RANK=')]
            found[int(name)] = int(rank[0]) if rank else None
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Lane:
    settings = ()  # of traind, besides those below
    starter = ()  # what starts traind
    cluster = {'workers_per_node': 2, 'threads_per_worker': 1, 'bind': 'none'}

    def __init__(self, number, options):
        self.folder = f'{options.work}/{number}'
        self.state = f'{self.folder}/state'
        self.options = options
        self.daemon = None
        self.environment = dict(os.environ)
        os.makedirs(self.state)
        self.mount()
        with open(f'{self.folder}/traind.conf', 'w') as file:
            file.write(f'worker = {options.build}/tests/bin/train-worker\nslots = 2\nrestart_delay_seconds = 0\ncancel_grace_seconds = 2\n'
                       f'stall_seconds = {STALL_SECONDS}\nrequire_token = no\nnode_check_seconds = 0\n' +
                       ''.join(f'{line}\n' for line in self.settings))

    def mount(self):
        shell('mount', '-t', 'tmpfs', '-o', f'size={TMPFS_MB}m,mode=0700', 'none', self.state)

    def mend(self):
        """What a fault may have left broken outside of the state folder."""

    def start(self, environment=None):
        if os.path.exists(f'{self.state}/listen'):
            os.unlink(f'{self.state}/listen')
        log = open(f'{self.folder}/daemon.log', 'a')
        self.daemon = subprocess.Popen([*self.starter, f'{self.options.build}/traind', '--config', f'{self.folder}/traind.conf', '--state', self.state,
                                        '--listen', '127.0.0.1:0'], stdout=log, stderr=log, env=environment or self.environment)
        expect(until(lambda: os.path.exists(f'{self.state}/listen') or self.daemon.poll() is not None) and self.daemon.poll() is None,
               'traind does not start')
        with open(f'{self.state}/listen') as file:
            self.url = file.read().strip()

    def kill(self, number=signal.SIGKILL):
        self.daemon.send_signal(number)
        self.daemon.wait()

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + LIMIT
        while True:
            try:
                request = urllib.request.Request(self.url + path, data=data, method=method)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                raise Finding(f'{method or "GET"} {path}: {error.code} {error.read().decode()[:300]}') from error
            except OSError:
                if time.monotonic() > end or self.daemon.poll() is not None:
                    raise
                time.sleep(0.05)

    def submit(self, name, data, **more):
        document = {
            'name': name, 'cluster': self.cluster,
            'data': {'train': f'{data}/train', 'eval': f'{data}/validation'}, 'batch_per_worker': 8, 'steps': STEPS,
            'model': {'arch': 'resnet18', 'width': 0.25, 'image_size': 32, 'classes': 10, 'winograd': False, 'gemm': 'own'},
            'eval': {'every_epochs': 1, 'batch': 25}, 'checkpoint': {'every_steps': 2, 'every_epochs': 0, 'keep': 4}, 'restart': {'max': 3}}
        document.update(more)
        return self.call('/v1/jobs', document)['id']

    def job(self, number):
        return self.call(f'/v1/jobs/{number}')

    def run(self, number):
        return f'{self.state}/jobs/{number}'

    def processes(self, number):
        return processes_of(f'{self.run(number)}/attempt-')

    def lines(self, number, attempt=1):
        try:
            with open(f'{self.run(number)}/attempt-{attempt}/events.jsonl', 'rb') as file:
                return file.read().split(b'\n')[:-1]
        except OSError:
            return []

    def ended(self, number):
        return self.job(number)['state'] in ('succeeded', 'failed', 'cancelled')

    def sql(self, text):
        database = sqlite3.connect(f'file:{self.state}/traind.db?mode=ro', uri=True, timeout=60)
        try:
            return database.execute(text).fetchall()
        finally:
            database.close()

    def warnings(self, number):
        rows = self.sql(f"select body from job_event where job_id = {number} and type = 'warning'")
        return ' | '.join(json.loads(row[0]).get('message') or '' for row in rows)


# ---------------------------------------------------------------- moments

MOMENTS = ['submitted', 'processes', 'run_start', 'eval', 'checkpoint', 'run_stop'] + [f'step {n}' for n in range(1, STEPS + 1)]


def reached(lane, number, moment):
    """Is the run's first attempt there, or past it?"""
    if moment == 'submitted':
        return True
    if moment == 'processes':
        return any(rank is not None for rank in lane.processes(number).values())
    kind, _, step = moment.partition(' ')
    for line in lane.lines(number):
        if b'"type": "%s"' % kind.encode() in line and (not step or b'"step": %s,' % step.encode() in line):
            return True
        if kind == 'eval' and b'"type": "eval_progress"' in line:
            return True
    return False


def wait_for(lane, number, moment, later):
    ticks = 0

    def there():
        nonlocal ticks
        ticks += 1
        return reached(lane, number, moment) or (ticks % 50 == 0 and lane.ended(number))
    until(there)
    time.sleep(later)


# ---------------------------------------------------------------- faults: what is done, and what must come of it

class Outcome:
    def __init__(self, cause=None, states=('succeeded',), same=True, complete=True, warns=None, failed_cause=None, attempts=None, judge=None):
        self.cause, self.states, self.same, self.complete, self.warns, self.failed_cause = cause, states, same, complete, warns, failed_cause
        self.attempts = attempts  # 1: it must not have been restarted
        self.judge = judge  # called with the job after it has ended


def kill_traind(lane, number, draw):
    lane.kill()
    time.sleep(draw.choice([0, 0, 0.3, 1.5]))
    lane.start()
    return Outcome(attempts=1)


def stop_traind(lane, number, draw):
    lane.daemon.send_signal(signal.SIGSTOP)
    time.sleep(draw.choice([0.5, 2, 10]))
    lane.daemon.send_signal(signal.SIGCONT)
    return Outcome(attempts=1)


def signal_processes(lane, number, signum, chosen):
    """The processes of the job whose rank (None: mpirun's) is chosen; returns their pids."""
    pids = [pid for pid, rank in lane.processes(number).items() if chosen(rank)]
    for pid in pids:
        send(pid, signum)
    return pids


def kill_mpirun(lane, number, draw):
    signal_processes(lane, number, signal.SIGKILL, lambda rank: rank is None)
    return Outcome(cause=r'mpirun|SIGKILL|signal 9|launcher')


def kill_rank(lane, number, draw):
    wanted = draw.randrange(2)
    signal_processes(lane, number, signal.SIGKILL, lambda rank: rank == wanted)
    return Outcome(cause=r'rank [01] .*(SIGKILL|signal 9)|ended by signal 9')


def kill_all(lane, number, draw):
    signal_processes(lane, number, signal.SIGKILL, lambda rank: True)
    return Outcome(cause=r'SIGKILL|signal 9|mpirun')


def kill_both(lane, number, draw):
    lane.kill()
    outcome = draw.choice([kill_rank, kill_mpirun, kill_all])(lane, number, draw)
    lane.start()
    return Outcome(cause=r'SIGKILL|signal 9|mpirun|while traind|ended') if outcome else None


def stop_rank_10(lane, number, draw):
    wanted = draw.randrange(2)
    stopped = signal_processes(lane, number, signal.SIGSTOP, lambda rank: rank == wanted)
    time.sleep(draw.choice([0.2, 2, 10]))
    for pid in stopped:
        send(pid, signal.SIGCONT)
    return Outcome(cause=r'stopped|stands still|no step|progress')


def stop_rank_ever(lane, number, draw):
    wanted = draw.randrange(2)
    signal_processes(lane, number, signal.SIGSTOP, lambda rank: rank == wanted)
    return Outcome(cause=r'rank [01] .*stopped|stopped by a signal|is stopped')


def stop_mpirun_ever(lane, number, draw):
    signal_processes(lane, number, signal.SIGSTOP, lambda rank: rank is None)
    return Outcome(cause=r'mpirun.*stopped|stopped')


def disk_full(lane, number, draw):
    path = f'{lane.state}/ballast'
    try:
        with open(path, 'wb') as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError:
        pass
    time.sleep(draw.choice([0.1, 0.5, 2]))
    os.unlink(path)
    return Outcome(cause=r'[Ff]ull|[Ss]pace|Bus error|SIGBUS', states=('succeeded', 'failed'), failed_cause=r'[Ff]ull|[Ss]pace')


def read_only(lane, number, draw):
    folder = f'{lane.run(number)}/checkpoints'
    if not os.path.isdir(folder):
        return Outcome(attempts=1)
    shell('mount', '--bind', folder, folder)
    try:
        # The kernel refuses while a file in it is open for writing.
        expect(until(lambda: tried('mount', '-o', 'remount,bind,ro', folder), every=0.01), f'{folder} stays open for writing')
        if draw.random() < 0.5:
            time.sleep(0.3)
        else:
            until(lambda: lane.ended(number))
    finally:
        shell('umount', '-l', folder)
    return Outcome(cause=r'[Rr]ead-only', states=('succeeded', 'failed'), failed_cause=r'[Rr]ead-only')


def spool_garbage(lane, number, draw):
    path = f'{lane.run(number)}/attempt-1/events.jsonl'
    if not lane.lines(number) or any(b'"type": "run_stop"' in line for line in lane.lines(number)):
        return Outcome(attempts=1)  # behind the end it may be that nobody reads any more
    with open(path, 'ab', buffering=0) as file:
        garbage = draw.choice([b'garbage\n', b'\0\0\0\n', b'{"seq": 1}\n', b'[]\n', b'\xff\xfe{\n', b'x' * 5000 + b'\n'])
        file.write(garbage)
    before = b'\n'.join(lane.lines(number)).split(garbage[:-1])[0]
    if b'"type": "run_stop"' in before:  # it ended meanwhile
        return Outcome(attempts=1)
    return Outcome(attempts=1, warns=r'bad line')


def spool_truncated(lane, number, draw):
    path = f'{lane.run(number)}/attempt-1/events.jsonl'
    if not lane.lines(number):
        return Outcome(attempts=1)
    size = os.path.getsize(path)
    size = draw.choice([0, size // 2, max(size - 7, 0)])
    ended = any(b'"type": "run_stop"' in line for line in lane.lines(number))
    os.truncate(path, size)
    if ended:  # which traind may not have read: it starts the run once more, from its last checkpoint
        return Outcome(cause='without reporting a result', complete=False)
    return Outcome(attempts=1, complete=False)


def shard_changed(lane, number, draw):
    shards = sorted(name for name in os.listdir(f'{lane.folder}/data/train') if name.startswith('train-'))
    path = f'{lane.folder}/data/train/{draw.choice(shards)}'
    how = draw.choice(['bytes', 'shorter', 'gone', 'other'])
    size = os.path.getsize(path)
    if how == 'bytes':
        with open(path, 'r+b') as file:
            for place in range(200, size, 300):
                file.seek(place)
                file.write(b'\xa5')
    elif how == 'shorter':
        os.truncate(path, size // 2)
    elif how == 'gone':
        os.unlink(path)
    else:
        with open(path + '.new', 'wb') as file:
            file.write(bytes(size))
        os.rename(path + '.new', path)
    return Outcome(cause=r'train-0000', states=('succeeded', 'failed'), failed_cause=r'train-0000|images', same=False)


def spoil(folder, draw):
    path = f'{folder}/{draw.choice(["state.json", "model.safetensors", "optimizer.safetensors"])}'
    how = draw.choice(['bit', 'short', 'gone', 'empty'])
    if how == 'gone':
        os.unlink(path)
    elif how == 'empty':
        os.truncate(path, 0)
    elif how == 'short':
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        with open(path, 'r+b') as file:
            place = draw.randrange(os.path.getsize(path))
            file.seek(place)
            old = file.read(1)
            file.seek(place)
            file.write(bytes([old[0] ^ 4]))


def checkpoints_spoilt(lane, number, draw, count):
    """The attempt is ended while the daemon is away, which finds spoilt checkpoints when it is back."""
    lane.kill()
    for pid in lane.processes(number):
        send(pid, signal.SIGKILL)
    until(lambda: not lane.processes(number))
    folder = f'{lane.run(number)}/checkpoints'
    names = sorted((name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if re.match(r'step-\d+$', name)), reverse=True)
    for name in names[:count]:
        spoil(f'{folder}/{name}', draw)
    lane.start()
    spoilt = names[:count]
    if spoilt and len(spoilt) == len(names):
        return Outcome(states=('succeeded', 'failed'), failed_cause=r'none of the \d+ checkpoints|checkpoint', cause='.', warns=None,
                       same=f'step-{STEPS:08d}' not in spoilt)
    if f'step-{STEPS:08d}' in spoilt:
        return Outcome(cause='.', states=('succeeded', 'failed'), failed_cause='.', same=False)
    return Outcome(cause='.', warns=r'trying an older one' if spoilt else None)


def newest_spoilt(lane, number, draw):
    return checkpoints_spoilt(lane, number, draw, 1)


def two_spoilt(lane, number, draw):
    return checkpoints_spoilt(lane, number, draw, 2)


def all_spoilt(lane, number, draw):
    return checkpoints_spoilt(lane, number, draw, 99)


def clock_stepped(lane, number, draw):
    lane.kill(signal.SIGTERM)
    if lane.options.faketime:
        lane.start(dict(lane.environment, LD_PRELOAD=lane.options.faketime, FAKETIME=draw.choice(['-1d', '-1h', '+1h', '+30d'])))
    else:
        lane.start()
    return Outcome(attempts=1)


def no_memory(lane, number, draw):
    wanted = draw.randrange(2)
    for pid, rank in lane.processes(number).items():
        if rank != wanted:
            continue
        try:
            with open(f'/proc/{pid}/statm') as file:
                now = int(file.read().split()[0]) * resource.getpagesize()
            resource.prlimit(pid, resource.RLIMIT_AS, (now + draw.choice([0, 1 << 16, 1 << 20]),) * 2)
        except (OSError, ProcessLookupError, ValueError):
            pass
    return Outcome(cause=r'memory|failed to map|cannot start a .*thread', states=('succeeded', 'failed'), failed_cause=r'memory|failed to map|cannot start a .*thread')


# name: what is done, the moments at which it can be
RUNNING = [moment for moment in MOMENTS if moment != 'submitted']
STARTED = [moment for moment in RUNNING if moment != 'processes']
KINDS = {
    'traind killed': (kill_traind, MOMENTS), 'traind stopped, then goes on': (stop_traind, MOMENTS), 'mpirun killed': (kill_mpirun, RUNNING),
    'a rank killed': (kill_rank, RUNNING), 'all of a run killed': (kill_all, RUNNING), 'traind and a run killed': (kill_both, RUNNING),
    'a rank stopped for up to 10 s': (stop_rank_10, RUNNING), 'a rank stopped for ever': (stop_rank_ever, RUNNING),
    'mpirun stopped for ever': (stop_mpirun_ever, RUNNING), 'disk full': (disk_full, MOMENTS), 'checkpoints read-only': (read_only, STARTED),
    'garbage in the events': (spool_garbage, STARTED), 'events cut off': (spool_truncated, STARTED), 'a shard changed': (shard_changed, MOMENTS),
    'newest checkpoint spoilt': (newest_spoilt, [f'step {n}' for n in range(5, STEPS + 1)]),
    'two newest checkpoints spoilt': (two_spoilt, [f'step {n}' for n in range(7, STEPS + 1)]),
    'all checkpoints spoilt': (all_spoilt, [f'step {n}' for n in range(3, STEPS + 1)]),
    'clock stepped': (clock_stepped, MOMENTS), 'no memory in a rank': (no_memory, RUNNING)}


# ---------------------------------------------------------------- judgement

def weights(lane, number):
    folder = f'{lane.run(number)}/checkpoints/step-{STEPS:08d}'
    out = []
    for name in ('model.safetensors', 'optimizer.safetensors'):
        with open(f'{folder}/{name}', 'rb') as file:
            out.append(hashlib.sha256(file.read()).hexdigest())
    return out


def series(lane, number):
    return lane.sql(f'select step, loss from step_metric where job_id = {number} order by step')


def evaluations(lane, number):
    return [(e['step'], e['top1'], e['top5'], e['loss'], e['images']) for e in lane.call(f'/v1/jobs/{number}/evals')['evals']]


def unfinished(lane, number):
    folder = f'{lane.run(number)}/checkpoints'
    return [name for name in (os.listdir(folder) if os.path.isdir(folder) else []) if not re.match(r'step-\d{8}$', name)]


def comparable(lane, number, outcome):
    """Is it trained by as many workers as the undisturbed run?"""
    with open(f'{lane.run(number)}/job.json') as file:
        nodes = json.load(file)['cluster']['nodes']
    return outcome.same and nodes == lane.cluster.get('nodes', 1)


def judge(lane, number, outcome, reference):
    job = lane.job(number)
    cause = (job.get('failure') or {}).get('reason') or ''
    told = f'{job["state"]} after {job["attempt"]} attempts: {job["reason"]} | first: {cause}'
    # A run that failed before its first step would do so again: it is not restarted.
    early = job['state'] == 'failed' and job['attempt'] == 1 and outcome.cause and not lane.sql(f'select 1 from step_metric where job_id = {number}')
    expect(job['state'] in outcome.states or early, f'the job is {told}')
    if job['state'] == 'failed':
        named = outcome.failed_cause if 'failed' in outcome.states else outcome.cause
        expect(re.search(named or '.', job['reason'] or ''), f'the cause is not named: {told}')
    if job['attempt'] > 1:
        expect(outcome.attempts != 1, f'it was restarted: {told}')
        expect(re.search(outcome.cause or '.', cause), f'the cause is not named: {told}')
    if outcome.warns:
        expect(re.search(outcome.warns, lane.warnings(number)), f'no warning says so: {lane.warnings(number)!r}; {told}')
    twice = lane.sql(f'select count(*) - count(distinct attempt || "." || seq) from job_event where job_id = {number} and seq > 0')[0][0]
    expect(twice == 0, f'{twice} events are there twice')
    if job['state'] == 'succeeded' and comparable(lane, number, outcome):
        expect(weights(lane, number) == reference['weights'], f'other weights than the undisturbed run: {told}')
        whole = series(lane, number) == reference['series'] and evaluations(lane, number) == reference['evaluations']
        expect(whole or not outcome.complete, f'other steps or evaluations: {series(lane, number)} {evaluations(lane, number)}; {told}')
        expect(whole or re.search('shorter|bad line', lane.warnings(number)), f'events are missing, and nothing says so: {told}')
    if outcome.judge:
        outcome.judge(job)
    expect(until(lambda: not lane.processes(number), 60), f'processes are left: {lane.processes(number)}')
    # What could not be removed while the folder was read-only is a few seconds later.
    expect(until(lambda: not unfinished(lane, number), 30), f'left in the folder of checkpoints: {unfinished(lane, number)}')


def one_fault(lane, fault, options, reference):
    draw = random.Random(f'{options.seed}:{fault}')
    # The first ones are of different kinds: a short run meets each.
    order = [kind for kind in options.kinds if re.search(options.only, kind)]
    random.Random(options.seed).shuffle(order)
    kind = order[fault % len(order)]
    act, moments = options.kinds[kind]
    moment, later = draw.choice(moments), draw.choice([0, 0, 0.02, 0.1, 0.3])
    shutil.rmtree(f'{lane.folder}/data', ignore_errors=True)
    shutil.copytree(options.data, f'{lane.folder}/data')
    number = None
    try:
        number = lane.submit(kind, f'{lane.folder}/data')
        wait_for(lane, number, moment, later)
        outcome = act(lane, number, draw)
        expect(until(lambda: lane.ended(number), every=0.05), f'it never ends: {lane.job(number)["state"]}, {lane.warnings(number)}')
        judge(lane, number, outcome, reference)
        words = None
    except (Finding, OSError, sqlite3.Error, subprocess.SubprocessError) as error:
        words = f'fault {fault}, {kind} at {moment} + {later} s, job {number}: {error}'
    again = number and words is None and lane.job(number)['attempt'] > 1
    if words:
        keep(lane, fault, number)
    tidy(lane, number)
    return kind, words, bool(again)


def keep(lane, fault, number):
    """What a finding left, for a person."""
    folder = os.environ.get('FAULTS_KEEP')
    if folder and number:
        os.makedirs(f'{folder}/{fault}', exist_ok=True)
        subprocess.run(['cp', '-r', lane.run(number), f'{lane.folder}/daemon.log', f'{folder}/{fault}'], check=False, stderr=subprocess.DEVNULL)


def tidy(lane, number):
    """The next fault meets a daemon without a past."""
    if lane.daemon.poll() is None:
        lane.daemon.send_signal(signal.SIGCONT)
        lane.kill()
    for pid in processes_of(lane.state):
        send(pid, signal.SIGKILL)
    until(lambda: not processes_of(lane.state), 60)
    lane.mend()
    for name in os.listdir(lane.state):
        path = f'{lane.state}/{name}'
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    open(f'{lane.folder}/daemon.log', 'w').close()
    lane.start()


# ---------------------------------------------------------------- the campaign

def undisturbed(lane, options):
    begin = time.monotonic()
    number = lane.submit('undisturbed', options.data)
    until(lambda: lane.ended(number))
    options.undisturbed_seconds = time.monotonic() - begin
    job = lane.job(number)
    if job['state'] != 'succeeded' or job['attempt'] != 1:  # a fault of the programs: what the ranks reported is all there is to find it by
        with open(f'{lane.run(number)}/attempt-1/stdout.log', errors='replace') as file:
            raise Finding(f'the undisturbed run is {job["state"]}: {job["reason"]}\n{file.read()[-4000:]}')
    reference = {'weights': weights(lane, number), 'series': series(lane, number), 'evaluations': evaluations(lane, number)}
    expect([step for step, _ in reference['series']] == list(range(1, STEPS + 1)), 'the undisturbed run lacks steps')
    tidy(lane, number)
    return reference


def campaign(options):
    lanes = [options.lane(number, options) for number in range(options.lanes)]
    try:
        return draw_faults(lanes, options)
    finally:
        for lane in lanes:
            if lane.daemon and lane.daemon.poll() is None:
                lane.kill(signal.SIGTERM)
            for pid in processes_of(lane.state):
                send(pid, signal.SIGKILL)


def draw_faults(lanes, options):
    for lane in lanes:
        lane.start()
    reference = undisturbed(lanes[0], options)
    faults = collections.deque([options.fault] if options.fault is not None else range(options.faults))
    results, lock = [], threading.Lock()
    end = time.monotonic() + options.seconds

    def work(lane):
        while time.monotonic() < end:
            with lock:
                if not faults:
                    return
                fault = faults.popleft()
            try:
                result = one_fault(lane, fault, options, reference)
            except Exception as error:  # of this program: it counts, and the lane goes no further
                result = (None, f'fault {fault}: the campaign itself failed: {error!r}', False)
                faults.clear()
            with lock:
                results.append(result)
                if result[1]:
                    print('#', result[1], flush=True)
                if options.verbose:
                    print(f'# {len(results)} done', flush=True)
    threads = [threading.Thread(target=work, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def arguments():
    parse = argparse.ArgumentParser()
    for name, kind, default in (('faults', int, 12), ('seed', int, 1), ('lanes', int, 3), ('fault', int, None), ('seconds', float, 1e9)):
        parse.add_argument(f'--{name}', type=kind, default=default)
    parse.add_argument('--only', default='', help='a regular expression of the kinds that are drawn')
    parse.add_argument('--verbose', action='store_true')
    for name in ('build', 'work', 'data'):
        parse.add_argument(f'--{name}', required=True)
    return parse


def report(options):
    """Runs the campaign and prints TAP; the status is 1 if there are findings."""
    results = campaign(options)
    failed = 0
    kinds = [kind for kind in options.kinds if re.search(options.only, kind)]
    for number, kind in enumerate(kinds, 1):
        mine = [result for result in results if result[0] == kind]
        bad = sum(1 for result in mine if result[1])
        failed += bad
        print(f'{"not " if bad else ""}ok {number} - {kind}: {len(mine)} faults, {sum(r[2] for r in mine)} restarts, {bad} findings')
    count = len(kinds)
    left = [f'{folder}/{name}' for folder, _, names in list(os.walk('/dev/shm')) + list(os.walk(os.environ['TMPDIR'])) for name in names
            if 'faketime' not in name]
    print(f'{"not " if left else ""}ok {count + 1} - {len(results)} faults leave nothing in shared memory and temporary folders {left[:5]}')
    broken = [result[1] for result in results if result[0] is None]
    print(f'{"not " if broken else ""}ok {count + 2} - the campaign ran to its end {broken}')
    print(f'1..{count + 2}')
    return 1 if failed or left or broken else 0


def main():
    options = arguments().parse_args()
    options.lane, options.kinds = Lane, KINDS
    found = subprocess.run(['find', '/usr/lib', '-name', 'libfaketime.so.1'], capture_output=True, text=True, check=False).stdout.split()
    options.faketime = found[0] if found else None
    sys.exit(report(options))


if __name__ == '__main__':
    main()
