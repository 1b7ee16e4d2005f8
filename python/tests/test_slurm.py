"""The array job of docs/guides/machines/slurm.sh on a Slurm that this test starts, with elements that are killed: what is missing is
submitted again, and the results are those of one check.

Needs slurmctld, slurmd, munged and root.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from needs import needs

PROGRAM = os.path.abspath(os.environ.get("MDFSCK", "target/debug/mdfsck"))
SCRIPT = Path(__file__).resolve().parents[2] / "docs/guides/machines/slurm.sh"
COMMANDS = ["slurmctld", "slurmd", "munged", "sbatch"]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} CPUs=64 Boards=1 SocketsPerBoard=64 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=1000000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
SlurmdParameters=config_overrides
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def results(text):
    """What a check printed, without what it cost."""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["kind"] not in ("statistics", "summary")]


@needs("slurm", all(map(shutil.which, COMMANDS)), "Slurm is not installed: slurmctld slurmd slurm-client munge")
@unittest.skipUnless(hasattr(os, "geteuid") and os.geteuid() == 0, "starting Slurm takes root")
@unittest.skipUnless(os.path.exists(PROGRAM), f"{PROGRAM} is not built")
class Slurm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="slurm-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        values = {"host": socket.gethostname().split(".")[0], "folder": self.folder, "controller": free_port(), "node": free_port()}
        for name in ("state", "spool", "bin"):
            os.mkdir(f"{self.folder}/{name}")
        os.symlink(PROGRAM, f"{self.folder}/bin/mdfsck")
        Path(f"{self.folder}/slurm.conf").write_text(CONFIGURATION.format(**values))
        Path(f"{self.folder}/key").write_bytes(os.urandom(128))
        os.chmod(f"{self.folder}/key", 0o600)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        munged = ["munged", "--foreground", "--force", f"--key-file={self.folder}/key", f"--socket={self.folder}/munge.socket"]
        munged += [f"--{name}-file={self.folder}/munge.{name}" for name in ("pid", "log", "seed")]
        self.start(munged)
        self.start(["slurmctld", "-D"])
        self.start(["slurmd", "-D", "-N", values["host"]])
        until = time.monotonic() + 60
        while "idle" not in self.run_command("sinfo", "--noheader", "--format=%T"):
            self.assertLess(time.monotonic(), until, "the node is not up")
            time.sleep(0.2)

    def start(self, command):
        log = open(f"{self.folder}/{command[0]}.out", "wb")
        process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        self.addCleanup(log.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(0.5)

    def run_command(self, *command, may_fail=True):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, cwd=self.folder)
        if not may_fail:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_elements_of_an_array_that_are_killed_are_submitted_again(self):
        self.run_command("mdfsck", "lab", "new", "sound", "--size", "36MB", may_fail=False)
        self.run_command("mdfsck", "lab", "damage", "sound", "-o", "data", "--kind", "key-order", may_fail=False)
        expected = self.run_command("mdfsck", "check", f"{self.folder}/data", "--json")
        self.run_command("mdfsck", "plan", "data", "--dir", "plan", "--task-size", "1MB", may_fail=False)
        self.environment["PLAN"] = f"{self.folder}/plan"
        missing = lambda: self.run_command("mdfsck", "plan", "--status", "plan", "--missing", may_fail=False)
        tasks = missing().split(",")
        self.assertGreater(len(tasks), 30)
        killed = 0
        for turn in range(20):
            left = missing()
            if not left:
                break
            job = self.run_command("sbatch", "--parsable", f"--array={left}%4", "--mem=0", "--cpus-per-task=1", str(SCRIPT), may_fail=False)
            for _ in range(3 if turn == 0 else 0):
                running = []
                while not running and self.run_command("squeue", "--noheader"):
                    running = self.run_command("squeue", "--noheader", "--states=R", "--format=%K").split()
                if running:
                    self.run_command("scancel", "--signal=KILL", f"{job}_{running[-1]}")
                    killed += 1
            while self.run_command("squeue", "--noheader"):
                time.sleep(0.3)
        self.assertEqual(missing(), "")
        self.assertEqual(killed, 3)
        merged = self.run_command("mdfsck", "merge", "plan", "--json")
        self.assertEqual(results(merged), results(expected))


if __name__ == "__main__":
    unittest.main()
