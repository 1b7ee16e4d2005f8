#!/usr/bin/env python3
"""Proof of log backups by change: what each costs, and what it saves that redo goes on from the last proof.

The lab makes a full backup, a differential backup and log backups of a database in use. Each moment at the end of a log
backup is checked in three ways: whole; by change, with all of the log applied; by change, with redo that goes on from the
last proof. Bytes that system calls have read (strace), those of log backups among them, and processor time; and whether all
have the same lines. Build the program with MDFSCK_COMMIT=any, as for change.py.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from change import bytes_by_file, lines
from parts import run


def bytes_read(command):
    """The bytes that the system calls of a command return, and those of log backups among them."""
    by_file = bytes_by_file(command)
    return sum(by_file.values()), sum(count for path, count in by_file.items() if path.endswith(".trn"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=20000, help="rows of each table of the lab")
    parser.add_argument("--transactions", type=int, default=2000)
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = Path(arguments.program).resolve()
        kinds = ",".join(["full", "diff", *["log"] * arguments.logs])
        run(program, "lab", "chain", folder / "b", "--sets", kinds, "--rows", arguments.rows, "--transactions", arguments.transactions, "--seed", arguments.seed)
        files = sorted((folder / "b").glob("*.bak")) + sorted((folder / "b").glob("*.trn"))
        sizes = {path: path.stat().st_size for path in files}
        logs = sum(size for path, size in sizes.items() if path.suffix == ".trn")
        one = ["--maxdop", "1", "--json"]
        history = ["--history", folder / "h.db"]
        run(program, "check", files[0], *history, "--keep-parts", "1TB", *one)
        run(program, "check", *files[:2], *history, *one)
        parts = folder / "h.db.parts"

        def keep(name):
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(parts, folder / name)

        def put_back(name, without_redo=False):
            shutil.rmtree(parts)
            shutil.copytree(folder / name, parts)
            if without_redo:
                for path in parts.glob("*.redo"):
                    path.unlink()

        ways = ("whole", "all of the log", "going on")
        spent = {way: [] for way in ways}
        read = {way: [] for way in ways}
        print(f"full backup {sizes[files[0]] >> 10} KB, {arguments.logs} log backups {logs >> 10} KB")
        for last in range(3, len(files) + 1):
            keep("before")
            commands = {
                "whole": ["check", *files[:last], *one],
                "all of the log": ["check", *files[:last], *one, *history],
                "going on": ["check", *files[:last], *one, *history],
            }
            times, outputs = {way: [] for way in ways}, {}
            for _ in range(arguments.turns):
                for way in ways:
                    put_back("before", way == "all of the log")
                    done, seconds, _ = run(program, *commands[way], may_have=16)
                    times[way].append(seconds)
                    outputs[way] = lines(done.stdout)
            if not outputs["whole"] == outputs["all of the log"] == outputs["going on"]:
                sys.exit(f"{files[last - 1]}: the lines differ")
            for way in ways:
                put_back("before", way == "all of the log")
                read[way].append(bytes_read([program, *commands[way]]))
                spent[way].append(statistics.median(times[way]))
            redo = sum(path.stat().st_size for path in parts.glob("*.redo"))
            shown = [f"{way}: {read[way][-1][0] >> 10} KB ({read[way][-1][1] >> 10} of logs), {1000 * spent[way][-1]:.0f} ms" for way in ways]
            print(f"log {last - 2}: {'; '.join(shown)}; kept {redo >> 10} KB", flush=True)
        whole = sum(bytes_ for bytes_, _ in read["whole"])
        for way in ways:
            all_, of_logs = sum(bytes_ for bytes_, _ in read[way]), sum(bytes_ for _, bytes_ in read[way])
            print(f"{way}: {all_ >> 10} KB ({100 * all_ / whole:.1f} % of whole checks), {of_logs >> 10} KB of logs, {sum(spent[way]):.2f} s of processor time")


if __name__ == "__main__":
    main()
