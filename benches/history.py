#!/usr/bin/env python3
"""What --history adds to a check: wall and processor time, and bytes of the file, over runs that take turns."""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measured(command, folder):
    """Wall and processor time of a command, in seconds."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before, begun = spent(), time.monotonic()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode & 12:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    return time.monotonic() - begun, spent() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mdfsck", help="the executable")
    parser.add_argument("--size", default="4GB", help="size of the database that is built")
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--work", help="folder for the database, by default a temporary one")
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        subprocess.run([program, "lab", "new", "data", "--size", arguments.size], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        history = Path(folder) / "h.db"
        plain, recorded = [], []
        for turn in range(arguments.repeat + 1):
            one = measured([program, "check", "data"], folder)
            other = measured([program, "check", "data", "--history", str(history)], folder)
            # The first turn fills the cache and makes the file.
            if turn > 0:
                plain.append(one)
                recorded.append(other)
            else:
                first_bytes = os.path.getsize(history)
        median = lambda runs, at: statistics.median(run[at] for run in runs)
        for name, at in [("wall", 0), ("processor", 1)]:
            without, with_history = median(plain, at), median(recorded, at)
            spread = [max(run[at] for run in runs) - min(run[at] for run in runs) for runs in (plain, recorded)]
            print(f"{name}: {without:.3f} s without, {with_history:.3f} s with: {with_history / without - 1:+.2%} "
                  f"(spread {spread[0]:.3f}, {spread[1]:.3f})")
        grown = (os.path.getsize(history) - first_bytes) / arguments.repeat
        print(f"file: {first_bytes} bytes after the first run, {grown:.0f} more per run")


if __name__ == "__main__":
    main()
