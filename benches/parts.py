#!/usr/bin/env python3
"""One check over many processes: what it costs, whether its results are those of one, and whether kills change them.

cost   parts, tasks and merge of a database that is built: bytes of the parts, processor time beside that of one check
workers  time that the tasks of a database take one worker, and two side by side, over runs that take turns
large  the same of a database that is mostly empty space: memory and time of plan, of a task, of merge
same   real files: merged results of 1, 2, 7, 64 tasks and one per megabyte, in random order, against those of a check
kill   a driver whose tasks are killed at random instants, again and again, until no part is missing
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import empty_space

FORMATS = (["--format", "text"], ["--format", "json"], ["--tableresults"])
COSTS = ("seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read")


def run(program, *arguments, may_have=0):
    """A run of the program; its processor time and its wall time, in seconds."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before, begun = spent(), time.monotonic()
    done = subprocess.run([program, *map(str, arguments)], capture_output=True)
    if done.returncode & ~may_have:
        sys.exit(f"{arguments}: {done.returncode}: {done.stderr.decode()}")
    return done, spent() - before, time.monotonic() - begun


def results(done):
    """What a check printed, without what it cost, and its status."""
    lines = []
    for line in done.stdout.splitlines():
        if line.startswith(b'{"kind":"statistics"'):
            continue
        if line.startswith(b'{"kind":"summary"'):
            summary = json.loads(line)
            line = {key: value for key, value in summary.items() if key not in COSTS}
        lines.append(line)
    return done.returncode, lines


def made(program, folder, paths, size):
    """The number of tasks of a new plan."""
    return json.loads(run(program, "plan", *paths, "--dir", folder, "--task-size", size, "--json")[0].stdout)["tasks"]


def cost(arguments, folder):
    program, data = arguments.program, Path(arguments.data) if arguments.data else folder / "data"
    if not arguments.data:
        run(program, "lab", "new", data, "--size", arguments.size, "--schema", arguments.schema)
    total = sum(file.stat().st_size for file in data.iterdir())
    checks = [run(program, "check", data, "--maxdop", "1", may_have=16)[1] for _ in range(3)]
    mega = -(-total // arguments.tasks) >> 20
    planned = run(program, "plan", data, "--dir", folder / "plan", "--task-size", f"{max(mega, 1)}MB", "--json")
    tasks = json.loads(planned[0].stdout)["tasks"]
    swept = [run(program, "task", folder / "plan", task, "--maxdop", "1")[1] for task in range(tasks)]
    merged = run(program, "merge", folder / "plan", "--maxdop", "1", may_have=16)
    parts = [file.stat().st_size for file in (folder / "plan/parts").iterdir()]
    one = min(checks)
    print(f"{total >> 20} MB, {tasks} tasks: parts {sum(parts) / total:.3%} of the data, largest {max(parts)} bytes")
    print(f"processor time: check {one:.2f} s; plan {planned[1]:.3f}, tasks {sum(swept):.2f}, merge {merged[1]:.3f}: "
          f"{(planned[1] + sum(swept) + merged[1]) / one - 1:+.1%}; {(sum(swept) - one) / tasks * 1000:.1f} ms more per task; "
          f"merge {merged[2]:.2f} s of time")


def workers(arguments, folder):
    program, data = arguments.program, Path(arguments.data) if arguments.data else folder / "data"
    if not arguments.data:
        run(program, "lab", "new", data, "--size", arguments.size, "--schema", arguments.schema)
    total = sum(file.stat().st_size for file in data.iterdir())
    tasks = made(program, folder / "plan", [data], f"{max(-(-total // arguments.tasks) >> 20, 1)}MB")
    took = {1: [], 2: []}
    for turn in range(2 * arguments.repeat):
        count = 1 + turn % 2
        for part in (folder / "plan/parts").iterdir():
            part.unlink()
        begun = time.monotonic()
        # Every second task each, so that neither gets the smaller ones.
        lists = (",".join(map(str, range(first, tasks, count))) for first in range(count))
        for started in [subprocess.Popen([program, "task", folder / "plan", some, "--maxdop", "1"]) for some in lists]:
            if started.wait():
                sys.exit(f"a task ended with {started.returncode}")
        took[count].append(time.monotonic() - begun)
    one, two = (statistics.median(took[count]) for count in (1, 2))
    print(f"{total >> 20} MB, {tasks} tasks: one worker {one:.2f} s, two {two:.2f} s, {one / two:.2f} times as fast "
          f"(spread {max(took[1]) - min(took[1]):.2f}, {max(took[2]) - min(took[2]):.2f})")


def large(arguments, folder):
    program, data = arguments.program, folder / "data"
    run(program, "lab", "new", data, "--size", "4GB", "--schema", arguments.schema)
    file = next(iter(data.iterdir()))
    for to in (file.stat().st_size, 16 << 30, arguments.to_gigabytes << 30):
        if to > file.stat().st_size:
            empty_space.enlarge(file, to)
        plan = folder / f"plan-{to}"
        costs = [peak(program, "plan", data, "--dir", plan, "--task-size", "64MB")]
        missing = run(program, "plan", "--status", plan, "--missing")[0].stdout.decode().strip()
        costs.append(peak(program, "task", plan, missing.split(",")[-1], "--maxdop", "1"))
        run(program, "task", plan, missing, "--maxdop", "1")
        costs.append(peak(program, "merge", plan, "--maxdop", "1"))
        said = (f"{what} {memory / 1024:.1f} MB, {seconds:.2f} s" for what, (memory, seconds) in zip(("plan", "a task", "merge"), costs))
        print(f"{to >> 20} MB: {'; '.join(said)} of processor time")


def peak(program, *arguments):
    """Peak memory of a process in KB, and its processor time in seconds."""
    started = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode & ~16:
        sys.exit(f"{arguments}: {started.returncode}")
    return usage.ru_maxrss, usage.ru_utime + usage.ru_stime


def same(arguments, folder):
    program, different, compared = arguments.program, 0, 0
    for number, path in enumerate(arguments.paths):
        path = Path(path).resolve()
        megabytes = max(path.stat().st_size >> 20, 1)
        expected = [run(program, "check", path, *form, may_have=31) for form in FORMATS]
        if expected[0][0].returncode & 12:
            continue
        for wanted in (1, 2, 7, 64, megabytes):
            plan = folder / f"{number}-{wanted}"
            tasks = made(program, plan, [path], f"{max(-(-megabytes // wanted), 1)}MB")
            order = list(range(tasks))
            random.shuffle(order)
            while order:
                some, order = order[:8], order[8:]
                run(program, "task", plan, ",".join(map(str, some)))
            for form, (one, _, _) in zip(FORMATS, expected):
                compared += 1
                if results(run(program, "merge", plan, *form, may_have=31)[0]) != results(one):
                    different += 1
                    print(f"{path}: {tasks} tasks, {form}: different")
    print(f"{len(arguments.paths)} files, {compared} results, {different} different")
    return different


def kill(arguments, folder):
    program, data, killed, different = arguments.program, folder / "data", 0, 0
    run(program, "lab", "new", folder / "sound", "--size", arguments.size)
    run(program, "lab", "damage", folder / "sound", "-o", data, "--kind", "key-order")
    expected = results(run(program, "check", data, "--format", "json", may_have=31)[0])
    for number in range(arguments.repeat):
        plan = folder / f"plan-{number}"
        made(program, plan, [data], "1MB")
        while True:
            missing = run(program, "plan", "--status", plan, "--missing")[0].stdout.decode().strip()
            if not missing:
                break
            workers = [subprocess.Popen([program, "task", plan, task, "--maxdop", "1"]) for task in missing.split(",")[:4]]
            for worker in workers:
                if random.random() < 0.5:
                    time.sleep(random.random() * 0.02)
                    worker.kill()
                    killed += 1
            for worker in workers:
                worker.wait()
        if results(run(program, "merge", plan, "--format", "json", may_have=31)[0]) != expected:
            different += 1
    print(f"{arguments.repeat} checks, {killed} kills, {different} different")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "workers", "large", "same", "kill"])
    parser.add_argument("paths", nargs="*", help="for same: data files or backups, each a database of its own")
    parser.add_argument("--program", default="target/release/mdfsck", help="the executable")
    parser.add_argument("--size", default="4GB", help="size of the database that is built")
    parser.add_argument("--data", help="for cost and workers: a folder with a database, instead of one that is built")
    parser.add_argument("--schema", default="orders")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--to-gigabytes", type=int, default=64, help="for large: size of the largest database")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--work", help="folder for databases and plans, by default a temporary one")
    arguments = parser.parse_args()
    arguments.program = os.path.abspath(arguments.program)
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        sys.exit(1 if {"cost": cost, "workers": workers, "large": large, "same": same, "kill": kill}[arguments.what](arguments, Path(folder)) else 0)


if __name__ == "__main__":
    main()
