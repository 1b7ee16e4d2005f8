"""mdfsck-dask: the tasks of a plan on a Dask cluster, then the results.

    mdfsck plan /backups/sales.bak --dir /shared/plan
    mdfsck-dask /shared/plan --scheduler tcp://scheduler:8786 -- --format json --output sales.json

The workers need mdfsck, the files of the database and the folder of the plan under the same paths. Only tasks that have no part
yet are carried out: after whatever was lost (workers, machines, the scheduler), the same command goes on where the other one ended.

With --no-merge the tasks are all that is done, as 'mdfsck watch --engine' wants it:

    mdfsck watch /backups --history checks.db --engine mdfsck-dask --engine-dir /shared/plans \\
        --engine-argument=--no-merge --engine-argument=--until-eof --engine-argument=--scheduler=tcp://scheduler:8786
"""

import argparse
import asyncio
import concurrent.futures
import os
import shlex
import statistics
import sys
import threading
import time

from distributed import Client, LocalCluster, wait
from distributed.comm import CommClosedError

from . import core

# Seconds between two looks at what has ended.
TURN = 1.0
# A task is started a second time if it runs this many times as long as most have.
SLOW = 3
# What wait() raises if nothing has ended, and what the end of the scheduler looks like.
NOTHING_YET = (TimeoutError, asyncio.TimeoutError)
LOST = (CommClosedError, OSError, concurrent.futures.CancelledError, asyncio.CancelledError)


class Run:
    """The tasks of a plan on a cluster."""

    def __init__(self, client, arguments):
        self.client, self.arguments = client, arguments
        self.futures, self.began, self.lasted, self.failed, self.hedged = {}, {}, [], [], set()

    def submit(self, task, attempt=0):
        call = (core.run_task, self.arguments.program, self.arguments.plan, task, self.arguments.task_options)
        key = f"mdfsck-task-{task}-{attempt}-{time.time_ns()}"
        self.futures[self.client.submit(*call, key=key, pure=False, retries=self.arguments.retries)] = task

    def carry_out(self, tasks):
        """Carries tasks out; what is said of those that failed."""
        left = set(tasks)
        for task in tasks:
            self.submit(task)
        while left and self.futures:
            try:
                done = wait(list(self.futures), timeout=TURN, return_when="FIRST_COMPLETED").done
            except NOTHING_YET:
                done = set()
            for future in done:
                self.end(future, left)
            self.note_running()
            if self.arguments.hedge and len(left) <= self.arguments.hedge * len(tasks):
                self.hedge(left)
        return self.failed

    def end(self, future, left):
        task = self.futures.pop(future)
        if task not in left:
            return
        try:
            said, is_refused = future.result()
        except LOST:
            raise
        except Exception as error:
            # Another attempt may be on its way.
            if task not in self.futures.values():
                left.discard(task)
                self.failed.append(f"{error or type(error).__name__}")
            return
        left.discard(task)
        if task in self.began:
            self.lasted.append(time.monotonic() - self.began[task])
        if is_refused:
            self.failed.append(said)
        elif said:
            print(said, file=sys.stderr)

    def note_running(self):
        running = {key for keys in self.client.processing().values() for key in keys}
        for future, task in self.futures.items():
            if future.key in running:
                self.began.setdefault(task, time.monotonic())

    def hedge(self, left):
        """Starts the slowest of the last tasks once more: a part is the same whoever writes it, and the first one to end wins."""
        now = time.monotonic()
        usual = statistics.median(self.lasted) if self.lasted else TURN
        for task in left - self.hedged:
            if task in self.began and now - self.began[task] > SLOW * max(usual, TURN):
                self.hedged.add(task)
                self.submit(task, attempt=1)


def parsed(given):
    split = given.index("--") if "--" in given else len(given)
    own, of_merge = given[:split], given[split + 1 :]
    parser = argparse.ArgumentParser(prog="mdfsck-dask", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", help="folder of the plan; options of 'mdfsck merge' come after --")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="address of the scheduler")
    where.add_argument("--local", metavar="N", type=int, help="number of processes on this machine (default: one per processor)")
    parser.add_argument("--program", default="mdfsck", help="the program, as the workers find it")
    parser.add_argument("--task-options", default="", type=shlex.split, metavar="TEXT", help="options of 'mdfsck task', such as '--maxdop 4'")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="further attempts of a task that fails")
    parser.add_argument("--hedge", type=float, default=0.05, metavar="SHARE", help="share of the tasks that may be started twice at the end")
    parser.add_argument("--no-merge", action="store_true", help="run the tasks and print no results; the status is 0 if all have a part")
    parser.add_argument("--until-eof", action="store_true", help="end when standard input ends, for example because the process at the other end of the pipe was killed")
    arguments = parser.parse_args(own)
    if arguments.no_merge and of_merge:
        parser.error("--no-merge: there is no merge that could have options")
    arguments.merge_options = of_merge
    return arguments


def end_with_input():
    """Ends this process when its standard input ends."""
    # Not sys.stdin: its lock would be held when the process ends otherwise.
    while os.read(0, 4096):
        pass
    os._exit(4)


def main(given=None):
    arguments = parsed(sys.argv[1:] if given is None else given)
    if arguments.until_eof:
        threading.Thread(target=end_with_input, daemon=True).start()
    try:
        # Round after round, until there are results.
        while (status := one_round(arguments)) == core.MORE:
            pass
        return status
    except core.Refused as error:
        print(error, file=sys.stderr)
        return error.status
    except LOST as error:
        print(f"mdfsck-dask: the cluster is lost ({type(error).__name__}: {error}); start the same command again", file=sys.stderr)
        return 4


def one_round(arguments):
    """Carries out the tasks that have no part, and merges."""
    tasks = core.missing(arguments.program, arguments.plan)
    if tasks:
        with cluster(arguments) as address, Client(address) as client:
            client.run_on_scheduler(forgive)
            failed = Run(client, arguments).carry_out(tasks)
        for text in failed:
            print(f"mdfsck-dask: {text}", file=sys.stderr)
    if arguments.no_merge:
        return 4 if tasks and core.missing(arguments.program, arguments.plan) else 0
    return core.merge(arguments.program, arguments.plan, arguments.merge_options)


def forgive(dask_scheduler):
    """A worker that dies is no proof against its task."""
    dask_scheduler.allowed_failures = 10


def cluster(arguments):
    """The cluster that was named, or one on this machine."""
    if arguments.scheduler:
        return Named(arguments.scheduler)
    return LocalCluster(n_workers=arguments.local, threads_per_worker=1, dashboard_address=None)


class Named:
    """A cluster that somebody else runs."""

    def __init__(self, address):
        self.address = address

    def __enter__(self):
        return self.address

    def __exit__(self, *_):
        return False


if __name__ == "__main__":
    sys.exit(main())
