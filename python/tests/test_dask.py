"""Checks that run on Dask while workers, a machine and the scheduler are killed: the results are those of one check.

    MDFSCK=target/debug/mdfsck python3 -m unittest discover -s python/tests -v

MDFSCK_DASK_RUNS says how often each is tried (2).
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from needs import needs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    import distributed
except ImportError:
    distributed = None

PROGRAM = os.path.abspath(os.environ.get("MDFSCK", "target/debug/mdfsck"))
RUNS = int(os.environ.get("MDFSCK_DASK_RUNS", "2"))
# So slow that a kill meets a task that runs.
SLOWLY = "--io-limit 10MB --maxdop 1"


def results(text):
    """What a check printed, without what it cost."""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["kind"] not in ("statistics", "summary")]


@needs("dask", distributed is not None, "Dask is not installed: pip install distributed")
@unittest.skipUnless(os.path.exists(PROGRAM), f"{PROGRAM} is not built")
class Dask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.data = str(Path(cls.folder.name) / "data")
        sound = str(Path(cls.folder.name) / "sound")
        subprocess.run([PROGRAM, "lab", "new", sound, "--size", "24MB"], check=True, capture_output=True)
        damage = [PROGRAM, "lab", "damage", sound, "-o", cls.data, "--kind", "key-order"]
        subprocess.run(damage, check=True, capture_output=True)
        check = subprocess.run([PROGRAM, "check", cls.data, "--json"], capture_output=True, text=True)
        cls.expected, cls.status = results(check.stdout), check.returncode

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def plan(self):
        plan = tempfile.mkdtemp(dir=self.folder.name)
        subprocess.run([PROGRAM, "plan", self.data, "--dir", plan, "--task-size", "2MB"], check=True, capture_output=True)
        return plan

    def command(self, plan, *options, merge=("--json",)):
        main = [sys.executable, "-m", "mdfsck_cluster.dask", plan, "--program", PROGRAM, "--task-options", SLOWLY]
        return [*main, *options, "--", *merge]

    def start(self, command, **options):
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=environment, **{**pipes, **options})

    def same(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, self.status, err)
        self.assertEqual(results(out), self.expected)

    def test_workers_of_a_local_cluster_are_killed(self):
        for turn in range(RUNS):
            with self.subTest(turn=turn):
                plan = self.plan()
                process = self.start(self.command(plan, "--local", "4"))
                until_one_runs(plan)
                for _ in range(1 + turn % 3):
                    workers = children(process.pid)
                    if workers:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(random.choice(workers), signal.SIGKILL)
                    time.sleep(0.5 * random.random())
                self.same(process)

    def test_a_machine_and_then_the_scheduler_are_killed(self):
        for turn in range(RUNS):
            with self.subTest(turn=turn):
                plan, cluster = self.plan(), Cluster(self)
                try:
                    process = self.start(self.command(plan, "--scheduler", cluster.address))
                    until_one_runs(plan)
                    cluster.kill(1)
                    time.sleep(random.random())
                    cluster.kill(0)
                    process.communicate(timeout=300)
                finally:
                    cluster.end()
                cluster = Cluster(self)
                try:
                    self.same(self.start(self.command(plan, "--scheduler", cluster.address)))
                finally:
                    cluster.end()

    def test_further_rounds_are_carried_out_until_there_are_results(self):
        folder = Path(self.folder.name)
        lost, plan = str(folder / "lost"), str(folder / "plan-of-lost")
        damage = [PROGRAM, "lab", "damage", str(folder / "sound"), "-o", lost, "--kind", "lost-write"]
        subprocess.run(damage, check=True, capture_output=True)
        subprocess.run([PROGRAM, "plan", lost, "--dir", plan, "--task-size", "2MB"], check=True, capture_output=True)
        check = subprocess.run([PROGRAM, "check", lost, "--json"], capture_output=True, text=True)
        process = self.start(self.command(plan, "--local", "2", merge=("--json", "--local-limit", "0")))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, check.returncode, err)
        self.assertEqual(results(out), results(check.stdout))
        self.assertTrue((Path(plan) / "round-2.json").exists(), "two rounds")

    def test_a_task_that_is_refused_is_not_tried_for_ever(self):
        plan = self.plan()
        (Path(plan) / "key").unlink()
        process = self.start(self.command(plan, "--local", "1"))
        out, err = process.communicate(timeout=300)
        self.assertTrue(process.returncode & 12, err)
        self.assertNotIn('"kind":"run"', out)
        self.assertIn("key", err)

    def test_it_is_the_engine_of_a_watcher(self):
        folder = Path(self.folder.name)
        backup = [PROGRAM, "lab", "backup", self.data, "-o", str(folder / "backups")]
        subprocess.run(backup, check=True, capture_output=True)
        arguments = ["-m", "mdfsck_cluster.dask", "--no-merge", "--until-eof", "--local=2", f"--program={PROGRAM}"]
        watch = [PROGRAM, "watch", str(folder / "backups"), "--history", str(folder / "h.db"), "--once", "--settle", "1s", "--json"]
        watch += ["--engine", sys.executable, "--engine-dir", str(folder / "plans"), "--engine-from", "1MB", "--jobs", "1"]
        process = self.start([*watch, *(f"--engine-argument={argument}" for argument in arguments)])
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1, err)
        self.assertEqual([line.get("status") for line in map(json.loads, out.splitlines()[:-1])], ["corrupt"], out)
        self.assertEqual(list((folder / "plans").iterdir()), [])

    def test_it_ends_with_its_input_and_leaves_what_was_done(self):
        plan = self.plan()
        command = self.command(plan, "--local", "2", "--no-merge", "--until-eof")[:-2]
        process = self.start(command, stdin=subprocess.PIPE)
        until_one_runs(plan)
        process.stdin.close()
        process.stdin = None
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (4, ""))
        process = self.start(command, stdin=subprocess.PIPE)
        process.stdout.read()
        self.assertEqual(process.wait(timeout=300), 0)
        process.stdin.close()
        merged = subprocess.run([PROGRAM, "merge", plan, "--json"], capture_output=True, text=True)
        self.assertEqual((merged.returncode, results(merged.stdout)), (self.status, self.expected))


class Cluster:
    """A scheduler and three workers, each with all that it starts in a process group of its own."""

    def __init__(self, test):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.processes = [test.start(dask, **quiet)]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard"]
        self.processes += [test.start(worker, **quiet) for _ in range(3)]

    def kill(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[number].pid, signal.SIGKILL)

    def end(self):
        for number, process in enumerate(self.processes):
            self.kill(number)
            process.wait()


def until_one_runs(plan):
    """Waits until a task of the plan runs."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if f"task {plan}" in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
            time.sleep(random.random())
            return
        time.sleep(0.05)
    raise AssertionError("no task was started")


def children(pid):
    """Processes that a process has started, and these in turn: only workers, not the program."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout.splitlines()[1:]
    rows = [line.split(None, 2) for line in listed]
    found, below = [], {str(pid)}
    for _ in range(4):
        below |= {row[0] for row in rows if row[1] in below}
    for row in rows:
        if row[0] in below and row[0] != str(pid) and "spawn_main" in row[2]:
            found.append(int(row[0]))
    return found


if __name__ == "__main__":
    unittest.main()
