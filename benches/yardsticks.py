#!/usr/bin/env python3
"""Measures mdfsck beside its yardsticks in one run and prints what was asked for and what was measured.

The yardsticks: programs that do the least work a check could do (benches/limits), pg_amcheck, which does the same job for
PostgreSQL (--postgres, the folder of its programs), and wimlib's decoder (--wim, its library). Without one of them its lines are
left out, and --only NAME... leaves out all parts but these. What is built and written goes to --work and is used again by the
next run; --record adds the results to docs/speed.tsv. README.md has how each figure is made."""

import argparse
import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import sys
import time

import measured
import speed
from measured import run, tell
from postgres import Postgres

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MB = 1 << 20
# Of the schema `entries`.
BYTES_PER_ROW = 124
# What a row with one index takes the limit program on the machine for which nanoseconds were asked.
LIMIT_NS_WHERE_ASKED = 16.2
PARTS = ("sweep", "postgres", "indexes", "rows", "backups", "small", "tables", "memory", "size", "cold")


def from_disk(file):
    """Has a file in the page cache as a disk brings it there. What was just written lies there in other portions, which cost up
    to three times as much to read."""
    with open(file, "rb", buffering=0) as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while opened.read(MB):
            pass


class Mdfsck:
    """The program under test."""

    def __init__(self, program, work, runs):
        self.program, self.work, self.runs = program, work, runs

    def database(self, name, schema, size):
        """The folder of a database of the lab."""
        folder = self.work / f"{name}-{size // MB}"
        if not (folder / "built").exists():
            tell(f"builds {name} of {size // MB} MB")
            shutil.rmtree(folder, ignore_errors=True)
            run([self.program, "lab", "new", folder / "files", "--schema", schema, "--size", size])
            (folder / "built").touch()
        return folder / "files"

    def bench(self, folder, *arguments):
        """Medians by cell, whose runs take turns: (configuration, threads, memory, cache) to figures."""
        for file in folder.iterdir():
            from_disk(file)
        tell(f"measures {folder.parent.name} {' '.join(map(str, arguments))}")
        results = self.work / "bench.json"
        run([self.program, "bench", folder, "--repeat", self.runs, "--json", results, *arguments])
        cells = {}
        for cell in json.loads(results.read_text())["cells"]:
            seconds = [run["seconds"] for run in cell["runs"]]
            key = (cell["configuration"], cell["maxdop"], cell["memory"], cell["cache"])
            cells[key] = {
                "seconds": statistics.median(seconds),
                "spread": (min(seconds), max(seconds)),
                "cpu": statistics.median(run["cpu_seconds"] for run in cell["runs"]),
                "peak": max(run["memory_peak"] for run in cell["runs"]),
                "spilled": statistics.median(run["spilled_bytes"] for run in cell["runs"]),
            }
        return cells

    def summary(self, folder):
        """What a check counts, and the least memory that it runs with on one thread."""
        lines = run([self.program, "check", "--format", "json", "--maxdop", "1", folder]).splitlines()
        estimate = json.loads(run([self.program, "check", "--estimate-only", "--format", "json", "--maxdop", "1", folder]))
        return json.loads(lines[-1]), estimate["minimum_memory_bytes"]


def size_of(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


class Limits:
    """The limit programs on one thread, measured once: GB/s of the structure of rows and of rows with two indexes, and nanoseconds of
    a row with one index."""

    def __init__(self, source, work):
        self.source, self.work = source, work

    @functools.cached_property
    def output(self):
        return limits(self.source, self.work)

    def lines(self, pattern, unit="GB/s"):
        """The figures of the lines that begin like this, from a file."""
        lines = [line for line in self.output.splitlines() if re.match(pattern, line) and "L2" not in line and re.search(r"\b1t\b", line)]
        if not lines:
            sys.exit(f"the limit programs print no line like {pattern}:\n{self.output}")
        return [float(re.search(rf"([\d.]+) {unit}", line)[1]) for line in lines]

    @property
    def structure(self):
        return max(self.lines(r"ck\+parse,"))

    @property
    def with_indexes(self):
        return max(self.lines(r"ck\+parse\+.*in place\+2 NC,"))

    @property
    def row_ns(self):
        # A hash that every processor has, so that machines can be compared.
        return min(self.lines(r"ck\+parse\+mum, columns in place\+1 NC,", "ns/row"))


def limits(source, work):
    """What the limit programs print."""
    target = work / "limits"
    tell("builds the limit programs")
    run(["cargo", "build", "--release", "--manifest-path", source / "Cargo.toml", "--target-dir", target], cwd=work)
    program, pages = target / "release" / "limits", work / "limits.pages"
    if not pages.exists():
        run([program, "gen", pages, "1"])
    from_disk(pages)
    tell("measures the limit programs")
    return run([program, "rows", pages, "in-place-only"])


def index_rows():
    """Time of a check with an index on a computed column and with a filtered sparse one, divided by that with an ordinary one;
    and the same of the index alone."""
    tell("measures indexes on computed and sparse columns")
    output = run(["cargo", "bench", "-p", "mdfsck-check", "--bench", "index_rows"], cwd=REPOSITORY)
    ratios = lambda line: [float(word) for word in line.split()[-2:]]
    of = {word: ratios(line) for line in output.splitlines() for word in ("computed:", "sparse") if word in line}
    return of["computed:"], of["sparse"], output


class Lines:
    """The table of results."""

    def __init__(self):
        self.rows = []

    def add(self, ident, what, bound, value, how, unit="x", is_at_most=False):
        """Adds a line. `bound` is the target, or None for a figure without one. Shares are given as numbers and shown in per cent."""
        scale = 100 if unit == "%" else 1
        word, holds = ("at most", value <= bound if bound else None) if is_at_most else ("at least", value >= bound if bound else None)
        row = {
            "id": ident,
            "what": what,
            "asked": f"{word} {bound * scale:g} {unit}" if bound else "-",
            "measured": f"{value * scale:.3g} {unit}",
            "holds": holds,
            "how": how,
        }
        if bound:
            row |= {"bound": f"{'<=' if is_at_most else '>='} {bound * scale:g}", "unit": unit, "value": value * scale}
        self.rows.append(row)

    def at_least(self, *line, **options):
        self.add(*line, **options)

    def at_most(self, *line, **options):
        self.add(*line, is_at_most=True, **options)

    def print(self):
        print("| what | target | measured | holds | how |\n|---|---|---|---|---|")
        for row in self.rows:
            holds = {True: "yes", False: "**no**", None: ""}[row["holds"]]
            print(f"| {row['what']} | {row['asked']} | {row['measured']} | {holds} | {row['how']} |")


def sweep(mdfsck, folder, limits, lines, raw):
    """Pages and rows, on one thread and on two, beside the limit programs."""
    cells = raw["main"] = mdfsck.bench(folder, "--maxdop", "1,2", "--configurations", "full,physical")
    size = size_of(folder)
    rate = {key[:2]: size / cell["seconds"] / 1e9 for key, cell in cells.items()}
    shown = {key: f"{value:.2f} GB/s" for key, value in rate.items()}
    structure, with_indexes, raw["limits"] = limits.structure, limits.with_indexes, limits.output
    how = f"{shown['physical', 1]} against {structure:.2f}"
    lines.at_least("physical", "physical-only, 1 thread, relative to the limit programs", 0.8, rate["physical", 1] / structure, how, unit="%")
    how = f"{shown['full', 1]} against {with_indexes:.2f} with two indexes"
    lines.at_least("full", "full, 1 thread, relative to the limit programs", 0.6, rate["full", 1] / with_indexes, how, unit="%")
    for name in ("physical", "full"):
        how = f"{shown[name, 2]} against {shown[name, 1]}"
        lines.at_least(f"two-threads-{name}", f"{name}, 2 threads, relative to 1 thread", 1.9, rate[name, 2] / rate[name, 1], how)
    counted, _ = mdfsck.summary(folder)
    all_rows = counted["rows"] + counted["verified"]["index_rows"]
    seconds = size / rate["full", 1] / 1e9
    how = f"{counted['rows'] / seconds / 1e6:.1f} M base rows/s, {seconds / all_rows * 1e9:.0f} ns a row of table or index"
    lines.add("rows-a-second", "full, 1 thread, rows", None, all_rows / seconds / 1e6, how, unit="M rows/s")


def postgres(mdfsck, folder, programs, rows, lines, raw):
    """One table beside the same one in PostgreSQL."""
    cells = raw["entries"] = mdfsck.bench(folder, "--maxdop", "1", "--configurations", "full,physical")
    with Postgres(programs, mdfsck.work, rows) as server:
        tell("measures pg_amcheck")
        bytes_of_table = server.bytes()
        alone, with_heap = server.seconds(), server.seconds("--heapallindexed")
    raw["postgres"] = {"bytes": bytes_of_table, "structure": alone, "heapallindexed": with_heap}
    own = mdfsck.summary(folder)[0]["rows"] / cells["full", 1, None, "warm"]["seconds"] / 1e6
    peer = rows / with_heap / 1e6
    how = f"{own:.2f} against {peer:.2f} M base rows/s"
    lines.at_least("amcheck-full", "full, 1 thread, relative to pg_amcheck --heapallindexed", 25, own / peer, how)
    own, peer = size_of(folder) / cells["physical", 1, None, "warm"]["seconds"] / 1e9, bytes_of_table / alone / 1e9
    how = f"{own:.2f} against {peer:.2f} GB/s"
    lines.at_least("amcheck-structure", "physical-only, 1 thread, relative to pg_amcheck", 10, own / peer, how)


def indexes(lines, raw):
    """The cost of other kinds of index, relative to an ordinary one."""
    computed, filtered, raw["index_rows"] = index_rows()
    for ident, name, (check, index) in (
        ("index-computed", "index on a computed column", computed),
        ("index-filtered", "filtered index on a sparse column", filtered),
    ):
        how = f"bench index_rows; for the whole check {check:.2f} x"
        lines.at_most(ident, f"{name}, cost relative to an int index", 1.1, index, how)


def rows(limits, lines, raw):
    """What a row costs by its form, of what the limit program takes for an ordinary one with one index."""
    tell("measures forms of rows")
    forms = raw["row_forms"] = measured.row_forms(REPOSITORY)
    least = limits.row_ns
    for ident, name, bound in (
        ("moved", "one in 50 moved", 50),
        ("empty-slots", "an empty slot after every 50", 50),
        ("sparse", "a sparse column, one in 10 set", 45),
        ("row-compression", "row compression", 70),
        ("page-compression", "page compression", 80),
        ("80-columns", "80 columns", 100),
    ):
        how = f"{forms[name]:.0f} ns against {least:.1f}; rows of one form: {forms['of one form']:.0f} ns"
        lines.at_most(f"row-{ident}", f"a row: {name}", round(bound / LIMIT_NS_WHERE_ASKED, 1), forms[name] / least, how)


def backups(mdfsck, folder, wim, lines, raw):
    """The decoder beside another one on the same blocks, and the reads that open stripes."""
    tell("measures backups")
    compressed = measured.backup(mdfsck.program, folder, mdfsck.work / "compressed", "--compressed")
    blocks = mdfsck.work / "blocks"
    own, stored = measured.decoder(REPOSITORY, compressed[0], blocks)
    peer = measured.reference_decoder(wim, blocks) if wim else None
    raw["decoder"] = {"own": own, "stored": stored, "peer": peer}
    how = f"{stored:.0f} MB/s of stored bytes" + (f"; wimlib decodes the same at {peer:.0f}" if peer else "")
    lines.at_least("decoder", "compressed backup, decoder, 1 thread", 450, own, how, unit="MB/s")
    if peer:
        lines.at_least("decoder-peer", "compressed backup, decoder, relative to wimlib's", 1, own / peer, f"{own:.0f} against {peer:.0f} MB/s")
    if shutil.which("strace"):
        stripes = measured.backup(mdfsck.program, folder, mdfsck.work / "stripes", "--stripes", 3)
        size = sum(file.stat().st_size for file in stripes)
        reads = raw["reads_to_open"] = measured.reads_to_open(mdfsck.program, stripes)
        lines.at_most("stripes", "reads to open 3 stripes, per MB", 2, reads / (size / MB), f"{reads} reads for {size / MB:.0f} MB", unit="")


def small_backups(mdfsck, limits, lines, raw):
    """Processor time of a check of a folder of small backups, as the number of rows that the limit program checks in that time."""
    spent, size = raw["small_backups"] = measured.small_backups(mdfsck.program, mdfsck.work)
    how = f"{spent:.2f} s at {limits.row_ns:.1f} ns a row; {size / 40 / MB:.1f} MB each"
    what = "40 small backups, processor time in rows of the limit program"
    in_rows = lambda seconds, nanoseconds: seconds * 1e3 / nanoseconds
    asked = round(in_rows(0.25, LIMIT_NS_WHERE_ASKED), 1)
    lines.at_most("small-backups", what, asked, in_rows(spent, limits.row_ns), how, unit="M rows")


def tables(mdfsck, lines, raw):
    """The set-up of a catalog with many tables."""
    tell("measures 100,000 tables")
    seconds = raw["tables"] = measured.many_tables(mdfsck.program, mdfsck.work, 100_000, 5)
    lines.at_most("tables", "100,000 tables, 500,000 indexes, empty", 15, seconds, "1 thread", unit="s")


def memory(mdfsck, folder, largest, lines, raw):
    """The lowest grant against one that is larger than the database."""
    least, unlimited = mdfsck.summary(folder)[1], largest + 1024 * MB
    cells = raw["memory"] = mdfsck.bench(
        folder, "--maxdop", "1", "--configurations", "full", "--memory", f"{least},{unlimited}"
    )
    lowest, most = cells["full", 1, least, "warm"], cells["full", 1, unlimited, "warm"]
    how = f"{least / MB:.0f} MB, {lowest['spilled'] / MB:.1f} MB spilled: {lowest['seconds']:.2f} against {most['seconds']:.2f} s"
    lines.at_most("lowest-grant", "time with the lowest grant, relative to an unlimited one", 1.05, lowest["seconds"] / most["seconds"], how)
    lines.at_most("grant-kept", "peak memory, relative to the lowest grant", 1, lowest["peak"] / least, f"{lowest['peak'] / MB:.0f} MB")


def sizes(mdfsck, eighth, large, lines, raw):
    """8 times the data."""
    small = raw["eighth"] = mdfsck.bench(eighth, "--maxdop", "2", "--configurations", "full")
    whole = raw["large"] = mdfsck.bench(large, "--maxdop", "2", "--configurations", "full")
    small, whole = small["full", 2, None, "warm"], whole["full", 2, None, "warm"]
    # Of the bytes a part is the same in both.
    factor = mdfsck.summary(large)[0]["rows"] / mdfsck.summary(eighth)[0]["rows"]
    how = f"{whole['seconds']:.2f} against {small['seconds']:.2f} s, {factor:.2f} times the rows"
    lines.at_most("eight-times", "8 times the data", 8.3, whole["seconds"] / small["seconds"] * 8 / factor, how)
    how = f"{size_of(large) / 1e9:.1f} GB, 2 threads, default grant"
    lines.at_most("peak", "peak memory, largest database", 160, whole["peak"] / MB, how, unit="MB")


def cold(mdfsck, folder, lines, raw):
    """Files that are not in the page cache."""
    cells = raw["cache"] = mdfsck.bench(
        folder, "--maxdop", "2", "--configurations", "full,physical", "--cache", "warm,cold"
    )
    for name in ("full", "physical"):
        warm, from_device = cells[name, 2, None, "warm"], cells[name, 2, None, "cold"]
        how = f"{warm['seconds']:.2f} against {from_device['seconds']:.2f} s, 2 threads"
        lines.at_most(f"warm-{name}", f"{name}, warm, relative to cold", 1, warm["seconds"] / from_device["seconds"], how)
    cell = cells["physical", 2, None, "cold"]
    how = f"{size_of(folder) / cell['seconds'] / 1e9:.2f} GB/s from the device"
    lines.at_most("cold-processor", "physical-only, cold, share of a core", 0.25, cell["cpu"] / cell["seconds"], how)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--limits", type=pathlib.Path, default=REPOSITORY / "benches" / "limits", help="sources of the limit programs")
    options.add_argument("--postgres", type=pathlib.Path, help="folder with initdb, pg_ctl and pg_amcheck")
    options.add_argument("--wim", type=pathlib.Path, help="libwim.so, whose decoder is the yardstick of compressed backups")
    options.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is built and written")
    options.add_argument("--mdfsck", type=pathlib.Path, help="the program to measure; built from the sources without it")
    options.add_argument("--size", type=int, default=8192, help="MB of the largest database; others have 1/4 and 1/8")
    options.add_argument("--rows", type=int, default=6_000_000, help="rows of the table that is compared with PostgreSQL's")
    options.add_argument("--runs", type=int, default=7, help="runs of each cell")
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    options.add_argument(
        "--record", nargs="?", const="", metavar="NOTE", help="add the results to docs/speed.tsv, with a note such as 'both busy'"
    )
    options = options.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    program = options.mdfsck
    if program is None:
        tell("builds mdfsck")
        run(["cargo", "build", "--release", "-p", "mdfsck"], cwd=REPOSITORY)
        program = REPOSITORY / "target" / "release" / "mdfsck"
    mdfsck = Mdfsck(program.resolve(), work, options.runs)
    largest, lines, raw = options.size * MB, Lines(), {}
    # Measured again for each part, as machines grow slower and faster within the hour.
    least = lambda: Limits(options.limits.resolve(), work)
    orders = lambda part: mdfsck.database("orders", "orders", largest // part)
    wanted = {
        "sweep": lambda: sweep(mdfsck, orders(4), least(), lines, raw),
        "postgres": lambda: options.postgres and postgres(
            mdfsck, mdfsck.database("entries", "entries", options.rows * BYTES_PER_ROW + 8 * MB),
            options.postgres.resolve(), options.rows, lines, raw,
        ),
        "indexes": lambda: indexes(lines, raw),
        "rows": lambda: rows(least(), lines, raw),
        "backups": lambda: backups(mdfsck, orders(8), options.wim, lines, raw),
        "small": lambda: small_backups(mdfsck, least(), lines, raw),
        "tables": lambda: tables(mdfsck, lines, raw),
        "memory": lambda: memory(mdfsck, orders(4), largest, lines, raw),
        "size": lambda: sizes(mdfsck, orders(8), orders(1), lines, raw),
        "cold": lambda: cold(mdfsck, orders(4), lines, raw),
    }
    for part in PARTS:
        if part in options.only:
            wanted[part]()
    print(f"\nmedians of {options.runs} runs; largest database {options.size} MB\n")
    lines.print()
    plain = lambda value: {str(key): plain(part) for key, part in value.items()} if isinstance(value, dict) else value
    (work / "yardsticks.json").write_text(json.dumps({"rows": lines.rows, "raw": plain(raw)}, indent=1))
    if options.record is not None:
        machine = ", ".join(filter(None, [measured.machine(), options.record]))
        speed.record(time.strftime("%Y-%m-%d"), machine, lines.rows)


if __name__ == "__main__":
    main()
