#!/usr/bin/env python3
"""Faults of hosts, their network and Slurm, drawn from a seed as in faults.py; started by hosts.sh and slurm.sh, which make the cluster."""
import ctypes
import json
import os
import re
import signal
import subprocess
import time

import faults
from faults import MOMENTS, RUNNING, STARTED, Outcome, shell, until

PTRACE_SEIZE, WALL = 0x4206, 0x40000000  # of linux/ptrace.h and linux/wait.h


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def send_all(pids, number):
    for pid in pids:
        faults.send(pid, number)


# ---------------------------------------------------------------- hosts in network namespaces, the daemon on the first

class Hosts(faults.Lane):
    def __init__(self, number, options):
        self.net, self.lab = options.net, options.lab
        self.here, self.there = options.hosts
        self.starter = (self.net, 'run', self.lab, self.here)
        self.settings = (f'launch_agent = {self.lab}/ssh',)
        self.cluster = {'nodes': 2, 'hosts': [self.here, self.there], 'interface': 'eth0', 'workers_per_node': 1, 'threads_per_worker': 1,
                        'mpi_args': ['--mca', 'mpi_yield_when_idle', '1']}
        super().__init__(number, options)

    def mount(self):
        pass  # the other host has been there before, and would not see it

    def link(self, state):
        shell(self.net, 'link', self.lab, self.there, state)

    def rate(self, *words):
        shell(self.net, 'rate', self.lab, self.there, *words)

    def pids(self, words=''):
        """Those on the other host whose command line has the words; its sshd is one of them."""
        found = []
        for pid in output(self.net, 'pids', self.lab, self.there).split():
            try:
                with open(f'/proc/{pid}/cmdline') as file:
                    if words in file.read().replace('\0', ' '):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def mend(self):
        self.link('up')
        self.rate('off')
        send_all(self.pids(), signal.SIGCONT)
        send_all(self.pids('orted'), signal.SIGKILL)
        until(lambda: not self.pids('orted'), 60)


def lost(lane, number):
    """The other host is not to be reached: the job goes on without it, or with it if it is back. Without a checkpoint it starts again with as
    many hosts as at first, or fails."""
    def judge(job):
        resumed = [event for event in lane.call(f'/v1/jobs/{number}/events?limit=1000')['events'] if event['type'] == 'resume']
        fewer = [event for event in resumed if event['after']['world_size'] == 1]
        if fewer:
            before, after = fewer[0]['before'], fewer[0]['after']
            sizes = [before['world_size'], before['global_batch'], after['global_batch']]
            faults.expect(sizes == [2, 16, 8], f'world size and batch before, batch after: {sizes}')
            with open(f'{lane.run(number)}/job.json') as file:
                hosts = json.load(file)['cluster']['hosts']
            faults.expect(hosts == [lane.here], f'the hosts in its document are {hosts}')
            faults.expect(re.match(r'complete after [123] restarts?; the first failure: ', job['reason']), f'the reason is {job["reason"]}')
    folder = f'{lane.run(number)}/checkpoints'
    states = ('succeeded',) if os.path.isdir(folder) and os.listdir(folder) else ('succeeded', 'failed')
    return Outcome(cause=rf'{lane.there}|rank 1 on|network', states=states, failed_cause=lane.there, judge=judge)


def soon(lane, outcome):
    """It is found within a minute, or more on a machine where an undisturbed run takes long."""
    begin, judge_first = time.monotonic(), outcome.judge

    def judge(job):
        took, most = time.monotonic() - begin, 60 + 10 * lane.options.undisturbed_seconds
        faults.expect(took < most, f'it took {took:.0f} s to end, more than {most:.0f}')
        if judge_first:
            judge_first(job)
    outcome.judge = judge
    return outcome


def kill_rank(lane, number, draw):
    return soon(lane, faults.kill_rank(lane, number, draw))


def ended_unseen(pid):
    """Kills a process, which closes its connections; its parent learns of that no sooner than this thread calls the function that is returned:
    a traced thread of it ends only then. Where none may be traced, it does so at once."""
    held = max(int(name) for name in os.listdir(f'/proc/{pid}/task'))
    is_held = held != pid and ctypes.CDLL(None).ptrace(PTRACE_SEIZE, held, None, None) == 0
    faults.send(pid, signal.SIGKILL)
    return lambda: os.waitpid(held, WALL) if is_held else None


def kill_rank_unseen(lane, number, draw):
    """The other rank, on whose host a connection is found closed first, must not end before mpirun knows who was killed: not even by the signal
    of a write to that connection, which it is sent here because it is not always about to write."""
    wanted = draw.randrange(2)
    pids = {rank: pid for pid, rank in lane.processes(number).items()}
    try:
        tell = ended_unseen(pids[wanted])
    except (KeyError, OSError):  # the run has ended
        return Outcome(attempts=1)
    if 1 - wanted in pids:
        faults.send(pids[1 - wanted], signal.SIGPIPE)
    time.sleep(draw.choice([0.5, 2]))
    tell()
    return soon(lane, Outcome(cause=rf'^rank {wanted} on .*(SIGKILL|signal 9)'))


def ticks(pid):
    with open(f'/proc/{pid}/stat') as file:
        return sum(int(word) for word in file.read().rpartition(')')[2].split()[11:13])


def stop_rank_for_ever(lane, number, draw):
    """The rank that waits for the stopped one leaves its core to others."""
    wanted = draw.randrange(2)
    faults.signal_processes(lane, number, signal.SIGSTOP, lambda rank: rank == wanted)
    outcome = soon(lane, Outcome(cause=rf'^rank {wanted} on {(lane.here, lane.there)[wanted]} is stopped by a signal'))
    waits = [pid for pid, rank in lane.processes(number).items() if rank == 1 - wanted]
    time.sleep(2)  # until it waits
    try:
        before, begin = ticks(waits[0]), time.monotonic()
        time.sleep(5)
        used, waited = (ticks(waits[0]) - before) / os.sysconf('SC_CLK_TCK'), time.monotonic() - begin
    except (IndexError, OSError):  # it has ended
        return outcome
    faults.expect(20 * used < waited, f'a rank that waits {waited:.1f} s uses {used:.1f} s of processor')
    return outcome


def cut_since(lane, number, begin):
    """The link is whole again; on a busy machine it may have been cut for longer than Open MPI waits for a sign of life (4 to 9 s)."""
    lane.link('up')
    return Outcome(attempts=1) if time.monotonic() - begin < 3.5 else lost(lane, number)


def cut_briefly(lane, number, draw):
    begin = time.monotonic()
    lane.link('down')
    time.sleep(draw.choice([0.1, 1, 3]))
    return cut_since(lane, number, begin)


def cut_for_long(lane, number, draw):
    lane.link('down')
    time.sleep(draw.choice([8, 15, 30]))
    lane.link('up')
    return lost(lane, number)


def cut_for_ever(lane, number, draw):
    lane.link('down')
    until(lambda: lane.ended(number), every=0.1)
    faults.expect(until(lambda: not lane.pids('train-worker')), 'the ranks of the host that is cut off do not end by themselves')
    lane.link('up')
    return lost(lane, number)


def cut_and_killed(lane, number, draw):
    begin = time.monotonic()
    lane.link('down')
    lane.kill()
    time.sleep(draw.choice([0, 1, 3]))
    lane.start()
    return cut_since(lane, number, begin)


def limited(lane, number, draw, *words):
    lane.rate(*words)
    if draw.random() < 0.5:
        time.sleep(draw.choice([1, 5]))
    else:
        until(lambda: lane.ended(number), every=0.1)
    lane.rate('off')
    return Outcome(attempts=1)


def slow(lane, number, draw):
    return limited(lane, number, draw, draw.choice(['100mbit', '50mbit', '30mbit']))


def lossy(lane, number, draw):
    return limited(lane, number, draw, draw.choice(['100mbit', '30mbit']), draw.choice(['6kb', '20kb']))


def kill_orted(lane, number, draw):
    send_all(lane.pids('orted'), signal.SIGKILL)
    return soon(lane, lost(lane, number))


def kill_all_there(lane, number, draw):
    send_all([pid for pid in lane.pids() if pid not in lane.pids('sshd_config')], signal.SIGKILL)
    return lost(lane, number)


def stop_there_briefly(lane, number, draw):
    stopped = lane.pids()
    send_all(stopped, signal.SIGSTOP)
    time.sleep(draw.choice([0.2, 2, 10]))
    send_all(stopped, signal.SIGCONT)
    return Outcome(cause='stopped')


def stop_there_for_ever(lane, number, draw):
    send_all(lane.pids(), signal.SIGSTOP)
    until(lambda: lane.ended(number), every=0.1)
    send_all(lane.pids(), signal.SIGCONT)
    return lost(lane, number)


ON_HOSTS = {
    'link cut for up to 3 s': (cut_briefly, STARTED), 'link cut for 8 to 30 s': (cut_for_long, STARTED),
    'link cut for ever': (cut_for_ever, STARTED), 'link cut and traind killed': (cut_and_killed, STARTED), 'link slow': (slow, MOMENTS),
    'link drops packets': (lossy, MOMENTS), "Open MPI's daemon killed": (kill_orted, STARTED), 'all on a host killed': (kill_all_there, STARTED),
    'a rank stopped for ever': (stop_rank_for_ever, STARTED), 'a host stopped for up to 10 s': (stop_there_briefly, RUNNING),
    'a host stopped for ever': (stop_there_for_ever, STARTED), 'a rank killed': (kill_rank, RUNNING),
    'a rank killed, which mpirun sees late': (kill_rank_unseen, STARTED), 'traind killed': (faults.kill_traind, MOMENTS)}


# ---------------------------------------------------------------- Slurm

class Slurm(faults.Lane):
    cluster = {'launcher': 'slurm', 'nodes': 2, 'workers_per_node': 1, 'threads_per_worker': 1}
    nodes = ('n1', 'n2', 'n3')

    def __init__(self, number, options):
        self.settings = ('slurm.poll_seconds = 1', f'slurm.setup = {options.setup}', 'slurm.options = --no-requeue')
        super().__init__(number, options)

    def mount(self):
        pass

    def do(self, command, *names):
        shell(self.options.script, command, self.options.lab, *names)

    def of(self, number):
        """Slurm's own number of the job, and its nodes; None: it has none yet."""
        about = self.job(number).get('slurm') or {}
        return about.get('job_id'), about.get('nodes') or ''

    def settled(self):
        idle = output('timeout', '5', 'sinfo', '-h', '-N', '-o', '%N %T').split('\n')
        return len({line for line in idle if line.endswith(' idle')}) == len(self.nodes) and not output('squeue', '-h', '-o', '%A').strip()

    def mend(self):
        for words in (['scancel', '--user=root'], ['scancel', '--user=root', '--signal=KILL']):
            faults.tried('timeout', '5', *words)
        if not until(self.settled, 90, 0.3):
            self.do('stop')
            self.do('start', str(len(self.nodes)))
            faults.expect(until(self.settled, 60, 0.3), 'the cluster does not come up again')


def away(lane, what, how, draw, choice=(0.5, 3, 8)):
    lane.do(how, what)
    time.sleep(draw.choice(choice))
    lane.do('revive', what)


def end_controller(lane, number, draw):
    away(lane, 'slurmctld', 'end', draw)
    return Outcome(attempts=1)


def kill_controller(lane, number, draw):
    """It loses the last seconds: it may have forgotten the job, or that it ended."""
    away(lane, 'slurmctld', 'kill', draw)
    return Outcome(cause='.')


def end_controller_kill_traind(lane, number, draw):
    lane.do('end', 'slurmctld')
    lane.kill()
    time.sleep(draw.choice([0, 2]))
    back = [lane.start, lambda: lane.do('revive', 'slurmctld')]
    draw.shuffle(back)
    for call in back:
        call()
        time.sleep(draw.choice([0, 2]))
    return Outcome(attempts=1)


def kill_munged(lane, number, draw):
    away(lane, 'munged', 'kill', draw)
    return Outcome(attempts=1)


def stop_slurmd(lane, number, draw):
    stopped = [int(pid) for pid in output('pgrep', '-f', f'^slurmd -D -N {draw.choice(lane.nodes[:2])} -f {os.environ["SLURM_CONF"]}').split()]
    send_all(stopped, signal.SIGSTOP)
    time.sleep(draw.choice([1, 4]))
    send_all(stopped, signal.SIGCONT)
    return Outcome(attempts=1)


def kill_node(lane, number, draw):
    node = draw.choice(lane.nodes[:2])
    lane.do('kill', node)
    if draw.random() < 0.5:
        until(lambda: lane.ended(number), every=0.1)
    else:
        time.sleep(draw.choice([1, 5]))
    lane.do('revive', node)
    return Outcome(cause=rf'{node}|NODE_FAIL|signal|lost|rank|ended')


def drain_node(lane, number, draw):
    node = draw.choice(lane.nodes[:2])
    shell('scontrol', 'update', f'nodename={node}', 'state=drain', 'reason=test')
    until(lambda: lane.ended(number), every=0.1)
    shell('scontrol', 'update', f'nodename={node}', 'state=resume')
    return Outcome(attempts=1)


def cancel_there(lane, number, draw):
    slurm, _ = lane.of(number)
    if slurm:
        faults.tried('scancel', str(slurm))
    return Outcome(states=('succeeded', 'cancelled'), attempts=1)


ON_SLURM = {
    'controller ended': (end_controller, MOMENTS), 'controller killed': (kill_controller, MOMENTS),
    'controller ended and traind killed': (end_controller_kill_traind, MOMENTS), 'munged killed': (kill_munged, MOMENTS),
    'a slurmd stopped for up to 4 s': (stop_slurmd, RUNNING), 'a node killed': (kill_node, STARTED), 'a node drained': (drain_node, RUNNING),
    'scancel': (cancel_there, MOMENTS), 'a rank killed': (faults.kill_rank, STARTED), 'traind killed': (faults.kill_traind, MOMENTS)}


def main():
    parse = faults.arguments()
    parse.add_argument('--hosts', nargs=2)
    parse.add_argument('--net', help='tests/system/hosts/net.sh')
    parse.add_argument('--script', help='tests/system/slurm/cluster.sh')
    parse.add_argument('--setup')
    parse.add_argument('--lab', required=True, help="the cluster's folder")
    options = parse.parse_args()
    options.faketime = None
    options.lane, options.kinds = (Hosts, ON_HOSTS) if options.hosts else (Slurm, ON_SLURM)
    raise SystemExit(faults.report(options))


if __name__ == '__main__':
    main()
