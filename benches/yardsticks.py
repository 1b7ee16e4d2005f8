#!/usr/bin/env python3
"""Measures mdfsck beside its yardsticks in one run and prints what was asked for and what was measured.

The yardsticks: programs that do the least work a check could do (--limits, the folder of their sources), and pg_amcheck, which
does the same job for PostgreSQL (--postgres, the folder of its programs). Without one of them its lines are left out. What is
built and written goes to --work and is used again by the next run; see README.md for how each figure is made."""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
MB = 1 << 20
# Of the schema `entries`.
BYTES_PER_ROW = 124


def run(command, **options):
    """Runs a command and gives its output; what it says besides is shown when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode & ~16:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def tell(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


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


def limits(source, work):
    """GB/s of the limit programs on one thread: the structure of rows, and rows with two indexes."""
    target = work / "limits"
    tell("builds the limit programs")
    run(["cargo", "build", "--release", "--manifest-path", source / "Cargo.toml", "--target-dir", target], cwd=work)
    program, pages = target / "release" / "limits", work / "limits.pages"
    if not pages.exists():
        run([program, "gen", pages, "1"])
    from_disk(pages)
    tell("measures the limit programs")
    output = run([program, "rows", pages, "in-place-only"])

    def figure(*words):
        lines = [line for line in output.splitlines() if all(word in line for word in words)]
        lines = [line for line in lines if "L2" not in line]
        if not lines:
            sys.exit(f"the limit programs print no line with {words}:\n{output}")
        return float(re.search(r"([\d.]+) GB/s", lines[0])[1]), lines[0].strip()

    structure = [line for line in output.splitlines() if re.match(r"ck\+parse[ ,]", line) and "L2" not in line]
    first = structure[0] if structure else sys.exit(f"no line of the structure alone:\n{output}")
    return float(re.search(r"([\d.]+) GB/s", first)[1]), figure("vaes", "+2 NC", "1t")[0], output


class Postgres:
    """A cluster with one table, of its own account where this runs as root; only a socket in its folder."""

    def __init__(self, programs, work, rows):
        self.programs, self.folder, self.rows = programs, work / f"pg-{rows}", rows
        self.account = {"user": "postgres"} if os.geteuid() == 0 else {}
        self.data = self.folder / "data"
        self.client = ["-h", self.folder, "-p", "5501", "-d", "d"]

    def command(self, name, *arguments):
        return run([self.programs / name, *arguments], cwd="/", **self.account)

    def __enter__(self):
        is_new = not (self.folder / "built").exists()
        if is_new:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            if self.account:
                shutil.chown(self.folder, "postgres")
            self.command("initdb", "-D", self.data, "-k", "-E", "UTF8", "--locale=C")
            settings = f"""port=5501
listen_addresses=''
unix_socket_directories='{self.folder}'
shared_buffers=1GB
maintenance_work_mem=1GB
max_wal_size=8GB
wal_level=minimal
max_wal_senders=0
fsync=off
full_page_writes=off
autovacuum=off
"""
            with open(self.data / "postgresql.conf", "a", encoding="ascii") as file:
                file.write(settings)
        self.server("start")
        if is_new:
            tell(f"fills PostgreSQL with {self.rows} rows")
            self.command("createdb", *self.client[:4], "d")
            table = f"""create extension amcheck;
create table t(id bigint not null, a int not null, b int not null, d timestamp not null, s text not null);
insert into t select g, hashint4(g), g%1000, timestamp '2020-01-01'+g*interval '1 second',
  substr(md5(g::text),1,24+g%9) from generate_series(1,{self.rows}) g;
alter table t add primary key(id);
create index t_a on t(a);
create index t_s on t(s);
vacuum (analyze) t;
checkpoint;"""
            for statement in table.split(";"):
                if statement.strip():
                    self.command("psql", *self.client, "-v", "ON_ERROR_STOP=1", "-qc", statement)
            (self.folder / "built").touch()
        return self

    def server(self, what):
        # Its output must not be a pipe of ours: the server would keep it open.
        command = [self.programs / "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-m", "fast", what]
        command = [word for word in command if what == "stop" or word not in ("-m", "fast")]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, cwd="/", **self.account)
        if done.returncode:
            sys.exit(f"PostgreSQL does not {what}: see {self.folder / 'log'}")

    def __exit__(self, *_):
        self.server("stop")

    def bytes(self):
        return int(self.command("psql", *self.client, "-Atc", "select pg_total_relation_size('t')"))

    def seconds(self, *options, runs=3):
        """Median time of pg_amcheck on one connection."""
        command = ["pg_amcheck", *self.client, "-j", "1", "-t", "public.t", *options]
        self.command(*command)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.command(*command)
            times.append(time.perf_counter() - start)
        return statistics.median(times)


def index_rows():
    """Time of a check with an index on a computed column and with a filtered sparse one, divided by that with an ordinary one;
    and the same of the index alone."""
    tell("measures indexes on computed and sparse columns")
    output = run(["cargo", "bench", "-p", "mdfsck-check", "--bench", "index_rows"], cwd=REPOSITORY)
    ratios = lambda line: [float(word) for word in line.split()[-2:]]
    of = {word: ratios(line) for line in output.splitlines() for word in ("computed:", "sparse") if word in line}
    return of["computed:"], of["sparse"], output


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--limits", type=pathlib.Path, help="folder with the sources of the limit programs")
    options.add_argument("--postgres", type=pathlib.Path, help="folder with initdb, pg_ctl and pg_amcheck")
    options.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is built and written")
    options.add_argument("--mdfsck", type=pathlib.Path, help="the program to measure; built from the sources without it")
    options.add_argument("--size", type=int, default=8192, help="MB of the largest database; others have 1/4 and 1/8")
    options.add_argument("--rows", type=int, default=6_000_000, help="rows of the table that is compared with PostgreSQL's")
    options.add_argument("--runs", type=int, default=5, help="runs of each cell")
    options.add_argument("--no-index-rows", action="store_true", help="leave out the ratios of indexes")
    options = options.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    program = options.mdfsck
    if program is None:
        tell("builds mdfsck")
        run(["cargo", "build", "--release", "-p", "mdfsck"], cwd=REPOSITORY)
        program = REPOSITORY / "target" / "release" / "mdfsck"
    mdfsck = Mdfsck(program.resolve(), work, options.runs)
    largest = options.size * MB
    eighth, main_one, large = (
        mdfsck.database("orders", "orders", size) for size in (largest // 8, largest // 4, largest)
    )
    entries = mdfsck.database("entries", "entries", options.rows * BYTES_PER_ROW + 8 * MB)

    rows = []

    def line(what, asked, measured, holds, how=""):
        rows.append({"what": what, "asked": asked, "measured": measured, "holds": holds, "how": how})

    def at_least(what, least, value, how, unit="x"):
        scale = 100 if unit == "%" else 1
        line(what, f"at least {least * scale:g} {unit}", f"{value * scale:.3g} {unit}", value >= least, how)

    def at_most(what, most, value, how, unit="x"):
        line(what, f"at most {most:g} {unit}", f"{value:.3g} {unit}", value <= most, how)

    raw = {}
    cells = raw["main"] = mdfsck.bench(main_one, "--maxdop", "1,2", "--configurations", "full,physical")
    size = size_of(main_one)
    rate = {key[:2]: size / cell["seconds"] / 1e9 for key, cell in cells.items()}
    shown = {key: f"{value:.2f} GB/s" for key, value in rate.items()}
    counted, least = mdfsck.summary(main_one)
    if options.limits:
        structure, with_indexes, raw["limits"] = limits(options.limits.resolve(), work)
        how = f"{shown['physical', 1]} against {structure:.2f}"
        at_least("physical-only, 1 thread, against the limit programs' structure", 0.6, rate["physical", 1] / structure, how, "%")
        how = f"{shown['full', 1]} against {with_indexes:.2f}"
        at_least("full, 1 thread, against the limit programs with two indexes", 0.4, rate["full", 1] / with_indexes, how, "%")
    for name in ("physical", "full"):
        how = f"{shown[name, 2]} against {shown[name, 1]}"
        at_least(f"{name}, 2 threads, against its own 1", 1.8, rate[name, 2] / rate[name, 1], how)
    all_rows = counted["rows"] + counted["verified"]["index_rows"]
    seconds = size / rate["full", 1] / 1e9
    how = f"{counted['rows'] / seconds / 1e6:.1f} M base rows/s, {seconds / all_rows * 1e9:.0f} ns a row of table or index"
    line("full, 1 thread, rows", "-", f"{all_rows / seconds / 1e6:.1f} M rows/s", None, how)

    cells = raw["entries"] = mdfsck.bench(entries, "--maxdop", "1", "--configurations", "full,physical")
    if options.postgres:
        with Postgres(options.postgres.resolve(), work, options.rows) as postgres:
            tell("measures pg_amcheck")
            bytes_of_table = postgres.bytes()
            alone, with_heap = postgres.seconds(), postgres.seconds("--heapallindexed")
        raw["postgres"] = {"bytes": bytes_of_table, "structure": alone, "heapallindexed": with_heap}
        own_rows = mdfsck.summary(entries)[0]["rows"]
        own, peer = own_rows / cells["full", 1, None, "warm"]["seconds"] / 1e6, options.rows / with_heap / 1e6
        how = f"{own:.2f} against {peer:.2f} M base rows/s"
        at_least("full, 1 thread, against pg_amcheck --heapallindexed", 10, own / peer, how)
        own = size_of(entries) / cells["physical", 1, None, "warm"]["seconds"] / 1e9
        peer = bytes_of_table / alone / 1e9
        at_least("physical-only, 1 thread, against pg_amcheck", 5, own / peer, f"{own:.2f} against {peer:.2f} GB/s")
    if not options.no_index_rows:
        computed, filtered, raw["index_rows"] = index_rows()
        for name, (check, index) in (("an index on a computed column", computed), ("a filtered index on a sparse column", filtered)):
            how = f"bench index_rows; what the index alone adds: {index:.2f} x"
            at_most(f"check with {name}, against one with an ordinary index", 1.3, check, how)

    unlimited = largest + 1024 * MB
    memories = f"{least},{unlimited}"
    cells = raw["memory"] = mdfsck.bench(
        main_one, "--maxdop", "1", "--configurations", "full", "--memory", memories
    )
    lowest, most = cells["full", 1, least, "warm"], cells["full", 1, unlimited, "warm"]
    how = f"{least / MB:.0f} MB, {lowest['spilled'] / MB:.1f} MB spilled: {lowest['seconds']:.2f} against {most['seconds']:.2f} s"
    at_most("lowest grant, against an unlimited one", 1.15, lowest["seconds"] / most["seconds"], how)
    how = "resident, of the grant"
    line("lowest grant is kept", f"at most {least / MB:.0f} MB", f"{lowest['peak'] / MB:.0f} MB", lowest["peak"] <= least, how)

    small = raw["eighth"] = mdfsck.bench(eighth, "--maxdop", "2", "--configurations", "full")
    whole = raw["large"] = mdfsck.bench(large, "--maxdop", "2", "--configurations", "full")
    small, whole = small["full", 2, None, "warm"], whole["full", 2, None, "warm"]
    # Of the bytes a part is the same in both.
    factor = mdfsck.summary(large)[0]["rows"] / mdfsck.summary(eighth)[0]["rows"]
    how = f"{whole['seconds']:.2f} against {small['seconds']:.2f} s, {factor:.2f} times the rows"
    at_most("8 times the data", 8.3, whole["seconds"] / small["seconds"] * 8 / factor, how)
    how = f"{size_of(large) / 1e9:.1f} GB, 2 threads, default grant"
    line("peak memory, largest database", "at most 160 MB", f"{whole['peak'] / MB:.0f} MB", whole["peak"] <= 160 * MB, how)

    cells = raw["cache"] = mdfsck.bench(
        main_one, "--maxdop", "2", "--configurations", "full,physical", "--cache", "warm,cold"
    )
    for name in ("full", "physical"):
        warm, cold = cells[name, 2, None, "warm"]["seconds"], cells[name, 2, None, "cold"]["seconds"]
        how = f"{warm:.2f} against {cold:.2f} s, 2 threads"
        line(f"{name}, warm against own cold", "never slower", f"{warm / cold:.2f} x", warm <= cold, how)

    print(f"\nmdfsck of {size / 1e9:.2f} GB, {counted['rows'] / 1e6:.1f} M base rows; medians of {options.runs} runs\n")
    print("| what | asked | measured | holds | how |\n|---|---|---|---|---|")
    for row in rows:
        holds = {True: "yes", False: "**no**", None: ""}[row["holds"]]
        print(f"| {row['what']} | {row['asked']} | {row['measured']} | {holds} | {row['how']} |")
    plain = lambda value: {str(key): plain(part) for key, part in value.items()} if isinstance(value, dict) else value
    (work / "yardsticks.json").write_text(json.dumps({"rows": rows, "raw": plain(raw)}, indent=1))


if __name__ == "__main__":
    main()
