#!/usr/bin/env python3
"""The slowest tests of the full tier, as a table: `benches/slowest.py [COUNT]`.

Builds the tests as `.ci/full` does, then runs one test program after the other. The tests of a program run at the same
time, so the time of a test includes waiting for a processor. Programs with a harness of their own, such as `command_line`
and `corpus`, run one test after the other, because this harness prints no times.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["cargo", "test", "--profile", "tests", "--workspace", "--features", "mdfsck/cloud", "--locked", "--no-run"]


def programs():
    """The test programs: the name of the crate, the name of the program, its path and the folder of its crate."""
    build = subprocess.run([*BUILD, "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable") and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            yield folder.name, message["target"]["name"], message["executable"], folder


def times(path, folder):
    """Runs a test program. Returns the seconds that it took, and those of each of its tests."""
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": str(folder)}
    listed = subprocess.run([path, "--help"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    is_standard = "--report-time" in listed.stdout
    # The other harness prints no times, so its tests run one after the other.
    options = ["-Z", "unstable-options", "--report-time"] if is_standard else ["--test-threads", "1"]
    arguments = [path, "--include-ignored", "--format", "json", *options]
    begun = started = time.monotonic()
    tests = []
    with subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            now = time.monotonic()
            if event.get("type") == "test" and event.get("event") != "started":
                tests.append((float(event.get("exec_time", now - started)), event["name"]))
            started = now
    return time.monotonic() - begun, tests


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    found, binaries = [], []
    for crate, target, path, folder in programs():
        took, tests = times(path, folder)
        name = f"{crate}: {target}"
        binaries.append((took, name, len(tests)))
        found.extend((seconds, name, test) for seconds, test in tests)
        print(f"{name}: {len(tests)} tests, {took:.1f} s", file=sys.stderr, flush=True)
    print("| seconds | program | tests |\n|---|---|---|")
    for took, name, tests in sorted(binaries, reverse=True)[:20]:
        print(f"| {took:.1f} | {name} | {tests} |")
    print("\n| seconds | program | test |\n|---|---|---|")
    for seconds, name, test in sorted(found, reverse=True)[:count]:
        print(f"| {seconds:.1f} | {name} | {test} |")


if __name__ == "__main__":
    main()
