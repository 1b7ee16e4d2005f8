#!/usr/bin/env python3
"""Overwrites or moves the beginning of real data files, and compares the rows that are exported with those of the originals.

    benches/beginning.py FOLDER [--files 200] [--program target/release/mdfsck]

Each file is tried with its first 64 KB, its first MB or its first quarter overwritten, with every second block of 64 KB overwritten (all with
`--damaged --like ORIGINAL`), and with 512 or 100,001 bytes before its pages (with `--carve`). A row that is not in the original is invented; a
row in which only NULLs differ has lost a value with its page. A row of a page that may have been freed is doubtful, and says so.
"""

import argparse
import collections
import csv
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KB, BLOCK, MOST_BYTES = 1 << 10, 64 << 10, 64 << 20
csv.field_size_limit(1 << 30)


def overwrite(content, first, length):
    content[first : first + length] = random.Random(first).randbytes(min(length, len(content) - first))
    return content


def every_second(content):
    for first in range(0, len(content), 2 * BLOCK):
        overwrite(content, first, BLOCK)
    return content


KINDS = {
    "first 64 KB": lambda content: overwrite(content, 0, 64 * KB),
    "first MB": lambda content: overwrite(content, 0, min(1024 * KB, len(content) - BLOCK)),
    "first quarter": lambda content: overwrite(content, 0, len(content) // 4),
    "every second 64 KB": every_second,
    "512 bytes before": lambda content: b"\xa7" * 512 + content,
    "100,001 bytes before": lambda content: b"\xa7" * 100001 + content,
}


def export(program, path, folder, *more):
    """The rows of each table, without the columns that say why a row is doubtful, and those of them whose page may have been freed; `None` if
    the export was refused."""
    done = subprocess.run([program, "export", path, "-o", folder, "--progress", "none", *more], capture_output=True)
    if done.returncode not in (0, 16):
        if done.returncode not in (1, 4, 17, 20):
            sys.exit(f"{path}: {done.stderr.decode()}")
        return None
    tables, doubtful = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    for path in sorted(pathlib.Path(folder).glob("*.csv")):
        table, leading = path.name.removesuffix(".csv"), 0
        if ".unreadable" in table:
            continue
        for suffix, columns in ((".doubtful", 3), (".rebuilt", 1)):
            if table.endswith(suffix):
                table, leading = table.removesuffix(suffix), columns
        with open(path, newline="") as rows:
            read = list(csv.reader(rows))[1:]
            tables[table].update(tuple(row[leading:]) for row in read)
            doubtful[table].update(tuple(row[3:]) for row in read if leading == 3 and "may have been freed" in row[2])
    return tables, doubtful


def is_part_of(row, original):
    """Whether a row of the original differs only where this row has NULL."""
    return any(len(row) == len(other) and all(mine in ("", its) for mine, its in zip(row, other)) for other in original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--program", default=str(ROOT / "target/release/mdfsck"))
    arguments = parser.parse_args()
    paths = [path for path in sorted(arguments.folder.rglob("*")) if path.suffix.lower() == ".mdf" and path.stat().st_size <= MOST_BYTES]
    random.Random(1).shuffle(paths)
    results = {kind: collections.Counter() for kind in KINDS}
    tried = 0
    for path in paths:
        if tried == arguments.files:
            break
        with tempfile.TemporaryDirectory() as folder:
            # Alone, so that no log beside the original is applied.
            alone = pathlib.Path(folder, "alone.mdf")
            alone.write_bytes(path.read_bytes())
            original = export(arguments.program, alone, f"{folder}/original")
            original = original[0] if original else {}
            if not any(original.values()):
                continue
            tried += 1
            for number, (kind, change) in enumerate(KINDS.items()):
                hurt = pathlib.Path(folder, "hurt.mdf")
                hurt.write_bytes(change(bytearray(path.read_bytes())))
                more = ["--carve"] if "before" in kind else ["--damaged", "--like", alone]
                found = export(arguments.program, hurt, f"{folder}/{number}", *more)
                counts = results[kind]
                counts["files"] += 1
                counts["rows"] += sum(sum(rows.values()) for rows in original.values())
                if found is None:
                    counts["refused"] += 1
                    print(f"refused: {kind}: {path}", file=sys.stderr)
                    continue
                for table, rows in found[0].items():
                    # Tables without a description have raw fields, which the original does not have.
                    if ".unit_" in table or "_partition_" in table:
                        counts["raw"] += sum(rows.values())
                        continue
                    counts["the same"] += sum((rows & original[table]).values())
                    for row in (rows - original[table]).elements():
                        # A freed page keeps the rows that it had, and nothing but its PFS page tells that it was freed.
                        what = "freed" if row in found[1][table] else "invented"
                        what = "lost values" if is_part_of(row, original[table]) else what
                        counts[what] += 1
                        if what == "invented":
                            print(f"{kind}: {path}: {table}: {row}"[:300], file=sys.stderr)
    columns = ["files", "refused", "rows", "the same", "lost values", "raw", "freed", "invented"]
    print("| what | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for kind, counts in results.items():
        print(f"| {kind} | " + " | ".join(f"{counts[column]:,}" for column in columns) + " |")


if __name__ == "__main__":
    main()
