#!/usr/bin/env python3
"""Proof by change: what a ledger costs, and what it saves.

A database is built, and a full backup of it. In a later copy, a part of the extents is changed (two pages of an extent
get another LSN): half of them at the end of the file, the others in its last fifth. A differential backup is made. A check of the full backup with the
differential takes turns with a check that uses the ledger: bytes that system calls have read (strace), processor time,
and whether both have the same lines. Build the program with MDFSCK_COMMIT=any, as packaging does: otherwise each check
with a ledger reads and hashes the file of the program, to know its build.
"""

import argparse
import json
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from parts import run

PAGE = 8192
# What differs between a check by change and a whole check.
OF_THE_WAY = ("seconds", "phases", "memory_peak", "memory_granted", "spilled", "pages_read", "by_change", "not_by_change")


def checksum(page):
    """The checksum of a page: the XOR of its sectors, each rotated by its distance from the last."""
    words = list(struct.unpack("<2048I", page))
    words[15] = 0
    total = 0
    for sector in range(16):
        value = 0
        for word in words[sector * 128:(sector + 1) * 128]:
            value ^= word
        rotation = 15 - sector
        total ^= (value << rotation | value >> (32 - rotation)) & 0xFFFFFFFF if rotation else value
    return total


def change(path, share, hot, chance):
    """Changes two pages in a share of the extents of a file: half of them at its end, as appended rows would be, the others
    scattered over its last part."""
    with path.open("r+b") as file:
        file.seek(0, 2)
        extents = file.tell() // PAGE // 8
        first = int(extents * (1 - hot))
        appended = int(extents * share / 2)
        scattered = chance.sample(range(first, extents - appended), int(extents * share) - appended)
        for extent in [*scattered, *range(extents - appended, extents)]:
            for page in chance.sample(range(8), 2):
                at = (extent * 8 + page) * PAGE
                file.seek(at)
                bytes_ = bytearray(file.read(PAGE))
                (flags,) = struct.unpack_from("<H", bytes_, 4)
                if bytes_[1] not in (1, 2, 3, 4) or not flags & 0x200:
                    continue
                (block,) = struct.unpack_from("<I", bytes_, 44)
                struct.pack_into("<I", bytes_, 44, block + 1)
                struct.pack_into("<I", bytes_, 60, checksum(bytes(bytes_)))
                file.seek(at)
                file.write(bytes_)


def bytes_by_file(command):
    """The bytes that the system calls of a command return from each file, but from the program's own."""
    with tempfile.NamedTemporaryFile() as log:
        calls = "trace=read,pread64,readv,preadv,preadv2"
        done = subprocess.run(["strace", "-f", "-y", "-qq", "-e", calls, "-o", log.name, *map(str, command)], capture_output=True)
        if done.returncode & ~16:
            sys.exit(f"{command}: {done.returncode}: {done.stderr.decode()}")
        found = re.findall(r"<([^>]*)>.*\) += (\d+)$", Path(log.name).read_text(errors="replace"), re.M)
    bytes_ = {}
    for path, count in found:
        bytes_[path] = bytes_.get(path, 0) + int(count)
    bytes_.pop(str(Path(command[0]).resolve()), None)
    return bytes_


def bytes_read(command):
    """The bytes that the system calls of a command return."""
    return sum(bytes_by_file(command).values())


def lines(output):
    """The lines of a check, without what depends on the way."""
    kept = []
    for line in output.decode().splitlines():
        value = json.loads(line)
        if value["kind"] in ("statistics", "phase", "run"):
            continue
        kept.append({name: part for name, part in value.items() if name not in OF_THE_WAY})
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--size", default="1GB")
    parser.add_argument("--changed", type=float, default=0.02, help="share of the extents")
    parser.add_argument("--hot", type=float, default=0.2, help="share of the file in which they lie")
    parser.add_argument("--compressed", action="store_true")
    parser.add_argument("--stripes", type=int, default=1)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        program = Path(arguments.program).resolve()
        form = ["--stripes", arguments.stripes, *(["--compressed"] if arguments.compressed else [])]
        run(program, "lab", "new", folder / "data", "--size", arguments.size)
        shutil.copytree(folder / "data", folder / "later")
        for path in (folder / "later").glob("*.mdf"):
            change(path, arguments.changed, arguments.hot, random.Random(arguments.seed))
        run(program, "lab", "backup", folder / "later", "--kind", "diff", "--since", folder / "data", "-o", folder / "b", *form)
        full, diff = (sorted((folder / "b").glob(f"{name}*.bak")) for name in ("full", "diff"))
        size, size_of_diff = (sum(path.stat().st_size for path in paths) for paths in (full, diff))
        data = sum(path.stat().st_size for path in (folder / "data").glob("*.mdf"))

        def fresh(name):
            for path in folder.glob("h.db*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if name:
                for suffix in ("", ".parts"):
                    source = folder / f"{name}.db{suffix}"
                    (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / f"h.db{suffix}")

        one = ["--maxdop", "1", "--json"]
        history = ["--history", folder / "h.db"]
        spent = {name: [] for name in ("check", "check with history", "keep", "whole", "change", "again")}

        def turn(name, *command):
            done, seconds, _ = run(program, "check", *command, *one, may_have=16)
            spent[name].append(seconds)
            return done

        fresh(None)
        turn("keep", *full, *history, "--keep-parts", "1TB")
        for suffix in ("", ".parts"):
            source = folder / f"h.db{suffix}"
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / f"base.db{suffix}")
        ledger = sum(path.stat().st_size for path in (folder / "base.db.parts").iterdir())
        spent["keep"].clear()
        for _ in range(arguments.turns):
            turn("check", *full)
            fresh(None)
            turn("check with history", *full, *history)
            fresh(None)
            turn("keep", *full, *history, "--keep-parts", "1TB")
            whole = turn("whole", *full, *diff)
            fresh("base")
            changed = turn("change", *full, *diff, *history)
            again = turn("again", *full, *diff, *history)
            if not lines(whole.stdout) == lines(changed.stdout) == lines(again.stdout):
                sys.exit("the lines differ")
        medians = {name: statistics.median(seconds) for name, seconds in spent.items()}
        of_whole = bytes_read([program, "check", *full, *diff, *one])
        fresh("base")
        by_change = bytes_read([program, "check", *full, *diff, *one, *history])
        once_more = bytes_read([program, "check", *full, *diff, *one, *history])
        summary = json.loads(changed.stdout.splitlines()[-1])["by_change"]

        def share(part, whole):
            return f"{100 * part / whole:.1f} %"

        print(f"database {data >> 20} MB, full backup {size >> 20} MB, differential {size_of_diff >> 20} MB, ledger {ledger >> 10} KB ({share(ledger, data)} of the data)")
        print(f"ranges swept: {summary['ranges_swept']} of {summary['ranges']} ({summary['reasons']})")
        print(f"making the ledger: processor time {medians['keep']:.2f} s, check with --history {medians['check with history']:.2f} s ({share(medians['keep'] - medians['check with history'], medians['check'])} of a check)")
        print(f"bytes: whole {of_whole >> 20} MB, by change {by_change >> 20} MB ({share(by_change, of_whole)}), once more {once_more >> 20} MB ({share(once_more, of_whole)})")
        print(f"processor: whole {medians['whole']:.2f} s, by change {medians['change']:.2f} s ({share(medians['change'], medians['whole'])}), once more {medians['again']:.2f} s ({share(medians['again'], medians['whole'])})")


if __name__ == "__main__":
    main()
