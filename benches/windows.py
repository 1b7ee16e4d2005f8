#!/usr/bin/env python3
"""A check over many nights: whether kills change its results, and what windows cost.

kill   windows over three databases (sound, damaged, a backup in stripes) that are killed at random instants, again and again
writes the same, killed at each of the calls with which they write to files, one after the other (needs strace)
cost   processor time of a check in one window, and in several, beside that of a check; bytes of the history and of the parts
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from parts import results, run


def window(arguments, path, *options):
    return [arguments.program, "check", path, "--history", "h.db", "--window", "1h", "--json", "--maxdop", "1", *options]


def line_of(output):
    """The line of the window; None if it did not come to its end."""
    for line in output.splitlines():
        if line.startswith(b'{"kind":"window"'):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def recorded():
    """Ranges that all windows have recorded."""
    try:
        history = sqlite3.connect("file:h.db?mode=ro", uri=True)
        return history.execute("SELECT coalesce(sum(ranges), 0) FROM window").fetchone()[0]
    except sqlite3.Error:
        return 0


def without_window(done):
    done.stdout = b"\n".join(line for line in done.stdout.splitlines() if not line.startswith(b'{"kind":"window"'))
    return results(done)


def make(arguments, folder):
    """The three databases."""
    os.chdir(folder)
    run(arguments.program, "lab", "new", "sound", "--size", arguments.size)
    run(arguments.program, "lab", "damage", "sound", "-o", "hurt", "--kind", "bit-rot", "--seed", "3")
    run(arguments.program, "lab", "backup", "hurt", "-o", "striped", "--stripes", "3")


def forget():
    for left in ("h.db", "h.db-wal", "h.db-shm"):
        Path(left).unlink(missing_ok=True)


def kill(arguments, folder):
    program = arguments.program
    make(arguments, folder)
    chance = random.Random(arguments.seed)
    kills, cycles, wrong, twice, windows = 0, 0, 0, 0, 0
    for name in ("sound", "hurt", "striped"):
        expected = results(run(program, "check", name, "--json", "--maxdop", "1", may_have=17)[0])
        # A first cycle that nobody kills.
        begun, lines = time.monotonic(), []
        while not lines or not lines[-1]["done"]["is_closed"]:
            command = window(arguments, name, "--range", "1MB", "--most-ranges", "3")
            lines.append(line_of(subprocess.run(command, capture_output=True).stdout))
        length = (time.monotonic() - begun) / len(lines)
        tasks = before = recorded()
        end = kills + arguments.kills // 3
        while kills < end:
            process = subprocess.Popen(window(arguments, name, "--range", "1MB", "--most-ranges", "3"),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                out, err = process.communicate(timeout=chance.uniform(0, 1.2 * length))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                continue
            windows += 1
            line = line_of(out)
            if line is None:
                sys.exit(f"{name}: {process.returncode}: {err.decode()}")
            if not line["done"]["is_closed"]:
                continue
            done = subprocess.CompletedProcess([], process.returncode, out, err)
            cycles += 1
            wrong += without_window(done) != expected
            # Each range was recorded once, whatever was killed. A cycle may end in a window that is killed while it prints.
            now = recorded()
            twice += (now - before) % tasks != 0
            before = now
        forget()
    print(f"{kills} kills, {windows} windows that ended, {cycles} cycles closed: {wrong} differ, "
          f"{twice} with a range that was recorded twice")
    return wrong + twice


WRITES = "pwrite64,write,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,link,linkat"


def writes(arguments, folder):
    """Kills a window before its first call that writes, then before its second, and so on, until one comes to its end."""
    make(arguments, folder)
    kills, wrong, twice = 0, 0, 0
    first, of = map(int, arguments.share.split("/"))
    for name in arguments.only or ("sound", "hurt", "striped"):
        expected = results(run(arguments.program, "check", name, "--json", "--maxdop", "1", may_have=17)[0])
        strace = ["strace", "-f", "-qq", "-o", "calls", "-e", f"trace={WRITES}"]
        # One window that closes the image, and one that leaves ranges to the next.
        for most in ("1000", "3"):
            command = window(arguments, name, "--range", "1MB", "--most-ranges", most, "--progress", "none")
            subprocess.run([*strace, *command], capture_output=True)
            calls = sum(1 for _ in open("calls"))
            if most == "1000":
                tasks = recorded()
            forget()
            for number in range(first + 1, calls + 1, of):
                inject = ["-e", f"inject={WRITES}:signal=SIGKILL:when={number}"]
                kills += subprocess.run([*strace, *inject, *command], capture_output=True).returncode != 0
                # What is left must be of use to the next windows, until the image is closed.
                line = None
                while line is None or not line["done"]["is_closed"]:
                    done = subprocess.run(command, capture_output=True)
                    line = line_of(done.stdout)
                    if line is None:
                        sys.exit(f"{name}, call {number}: {done.returncode}: {done.stderr.decode()}")
                wrong += without_window(done) != expected
                # A window that was killed when its image was closed is followed by another cycle.
                twice += recorded() % tasks != 0
                forget()
            print(f"{name}: killed before 1 in {of} of {calls} calls; so far {wrong} differ, {twice} with a range recorded twice",
                  flush=True)
    print(f"{kills} kills between the writes: {wrong} differ, {twice} with a range that was recorded twice")
    return wrong + twice


def cost(arguments, folder):
    program = arguments.program
    os.chdir(folder)
    run(program, "lab", "new", "data", "--size", arguments.size)
    plain = min(run(program, "check", "data", "--maxdop", "1", may_have=16)[1] for _ in range(3))
    print(f"check: {plain:.2f} s of processor time")
    for size in ("1GB", "64MB"):
        spent = []
        for _ in range(3):
            Path("h.db").unlink(missing_ok=True)
            spent.append(run(*window(arguments, "data", "--range", size), may_have=16)[1])
        print(f"one window, ranges of {size}: {min(spent):.2f} s, {100 * (min(spent) / plain - 1):+.1f} %; "
              f"history of {Path('h.db').stat().st_size >> 10} KB")
    Path("h.db").unlink()
    run(*window(arguments, "data", "--range", "16MB", "--most-ranges", "8"), may_have=16)
    parts = sum(file.stat().st_size for file in Path("h.db.parts").rglob("*") if file.is_file())
    line = json.loads([line for line in run(*window(arguments, "data", "--most-ranges", "0"), may_have=16)[0].stdout.splitlines()
                       if line.startswith(b'{"kind":"window"')][0])
    print(f"parts: {parts >> 10} KB of {line['done']['image_bytes_done'] >> 20} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, default="target/release/mdfsck")
    parser.add_argument("--seed", type=int, default=1)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("kill")
    verb.add_argument("--kills", type=int, default=1000)
    verb.add_argument("--size", default="9MB")
    verb = verbs.add_parser("writes")
    verb.add_argument("--size", default="9MB")
    verb.add_argument("--only", nargs="*", help="these of sound, hurt and striped")
    verb.add_argument("--share", default="0/1", help="0/4 to 3/4 divide a long run into four")
    verb = verbs.add_parser("cost")
    verb.add_argument("--size", default="1GB")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit({"kill": kill, "writes": writes, "cost": cost}[arguments.verb](arguments, Path(folder)) or 0)


if __name__ == "__main__":
    main()
