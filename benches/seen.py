#!/usr/bin/env python3
"""Counts what a folder of real databases contains, and what a check of them found.

    benches/seen.py FOLDER                  prints the tables
    benches/seen.py FOLDER --write          replaces the tables of docs/trust.md and docs/assumptions.md

FOLDER has data files with their logs, and backups, in any subfolders. The subfolder directly below FOLDER is the source of a file. Each
database of data files, and each full set of each complete backup, is checked once (mdfsck info, tables, check and page, with --json). The
tables have counts only: no name of a file, a database or an object.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MB = 1 << 20
PAGE = 8192
# A PFS page has one byte for each of the pages from itself on (docs/format/allocation.md).
PFS_PAGES, PFS_HEAD, PFS_ALLOCATED = 8088, 100, 0x40
NEVER_SHRUNK = "4294967295"
VERSION_2017, VERSION_2019 = 869, 904


def lines(program, *arguments):
    """The JSON lines of a command. A status with bit 16, or with findings, is no failure of this program."""
    done = subprocess.run([program, *arguments], capture_output=True, stdin=subprocess.DEVNULL)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Subject:
    """A database of data files, or a full backup set, with all that the commands say of it."""

    def __init__(self, program, folder, paths, product, info=None, number=None):
        self.paths, self.info, self.of_backup = paths, info or {}, info is None
        self.release = (product or "between two").removeprefix("SQL Server ")
        self.source = pathlib.Path(paths[0]).relative_to(folder).parts[0]
        self.bytes = sum(pathlib.Path(path).stat().st_size for path in paths)
        of_set = ["--set", str(number)] if number else []
        self.tables = [line for line in lines(program, "tables", "--all", "--json", *of_set, *paths) if line["kind"] == "table"]
        checked = lines(program, "check", "--json", *of_set, *paths)
        self.run = next((line for line in checked if line["kind"] == "run"), None)
        self.summary = next((line for line in checked if line["kind"] == "summary"), {})
        self.objects = [line for line in checked if line["kind"] == "object"]
        self.limits = {line["id"] for line in checked if line["kind"] == "not_verified"}
        self.notes = {line["id"] for line in checked if line["kind"] == "note"}
        self.header = {} if self.of_backup else file_header(program, paths[0])

    def is_checked(self):
        return self.run is not None and self.summary.get("findings") is not None

    def feature(self, name):
        """How often `info` counts a feature: of data files only, `info` does not read the catalog of a backup."""
        return self.info.get("features", {}).get(name, 0)

    def partitions(self, holds):
        """Partitions of user tables and views for which `holds`."""
        return sum(1 for table in self.tables if table["type"] in ("U", "V") and holds(table))

    def internal(self, start, what):
        """Rows or pages of the internal tables whose names begin with `start`."""
        of_them = [table for table in self.tables if (table["name"] or "").startswith(start) and table["index_id"] < 2]
        return sum(table[f"{what}_in_catalog"] for table in of_them)

    def internal_tables(self, start):
        return sum(1 for table in self.tables if (table["name"] or "").startswith(start) and table["index_id"] == 1)

    def counted(self, what, types=("U", "V")):
        return sum(line[what] for line in self.objects if line["type"] in types)

    def pages_of(self, kind):
        return sum(line["pages"][kind] for line in self.objects if line["type"] in ("U", "V"))

    def stale_pages(self):
        """Pages that no PFS page calls allocated and that are not zeros. Only databases of one data file are counted."""
        if self.of_backup or len(self.paths) > 1:
            return 0
        content, stale = memoryview(pathlib.Path(self.paths[0]).read_bytes()), 0
        for number in range(len(content) // PAGE):
            pfs = max(1, number // PFS_PAGES * PFS_PAGES)
            at = pfs * PAGE + PFS_HEAD + number % PFS_PAGES
            if at < len(content) and not content[at] & PFS_ALLOCATED:
                stale += any(content[number * PAGE : (number + 1) * PAGE])
        return stale


def file_header(program, path):
    """The fields of the first page by name."""
    fields = {}

    def walk(value):
        if isinstance(value, dict):
            if "name" in value and "value" in value:
                fields.setdefault(value["name"], value["value"])
            value = list(value.values())
        if isinstance(value, list):
            for one in value:
                walk(one)

    walk(lines(program, "page", "1:0", "--json", path))
    return fields


def subjects(program, folder):
    """All databases and full backup sets below the folder, and the number of backups that lack a stripe."""
    found, media, incomplete = [], {}, 0
    for line in lines(program, "info", "-r", "--json", str(folder)):
        if line["kind"] == "info":
            found.append(([file["path"] for file in line["files"]], line["product"], line, None))
        elif line["kind"] == "backup":
            stripes = media.setdefault(line["media_set_id"] or line["path"], {})
            stripes.setdefault(line["family"], []).append(line)
    for stripes in media.values():
        # Several copies of a backup have the same stripes.
        copies = list(zip(*stripes.values()))
        if len(stripes) < copies[0][0]["families"]:
            incomplete += 1
            continue
        for copy in copies:
            paths = [one["path"] for one in sorted(copy, key=lambda one: one["family"])]
            sets = copy[0]["sets"]
            full = [one for one in sets if one["type_description"] == "Database"]
            found.extend((paths, one["product"], None, one["position"] if len(sets) > 1 else None) for one in full)
    made = []
    for count, (paths, product, info, position) in enumerate(found, 1):
        if sys.stderr.isatty():
            print(f"\r{count} of {len(found)}", end="", file=sys.stderr, flush=True)
        made.append(Subject(program, folder, paths, product, info, position))
    return made, incomplete


def compressed(kind):
    return lambda one: one.partitions(lambda table: f"{kind} compression" in table["properties"])


def of_type(word):
    return lambda one: one.partitions(lambda table: word in table["index_type"])


def with_property(word):
    return lambda one: one.partitions(lambda table: word in table["properties"])


# What may be in a database: its name in the table, how often one database has it, and whether only data files show it.
FEATURES = [
    ("more than one data file", lambda one: len(one.run["files"]) - 1, False),
    ("a data file of more than 4 GB", lambda one: sum(file["pages"] * PAGE > 4 << 30 for file in one.run["files"]), False),
    ("read-only", lambda one: one.info.get("read_only") or 0, True),
    ("encrypted (TDE)", lambda one: "encrypted.pages" in one.limits, False),
    ("heaps", lambda one: one.partitions(lambda table: table["index_id"] == 0), False),
    ("nonclustered indexes", of_type("nonclustered"), False),
    ("filtered indexes", with_property("filtered"), False),
    ("disabled indexes", with_property("disabled"), False),
    ("indexes on views", lambda one: sum(1 for table in one.tables if table["type"] == "V"), False),
    ("computed columns", lambda one: sum(len(table["computed_columns"]) for table in one.tables if table["type"] == "U"), False),
    ("sparse columns", lambda one: one.feature("sparse columns"), True),
    ("values off the row (pages)", lambda one: one.pages_of("lob"), False),
    ("row-overflow (pages)", lambda one: one.pages_of("overflow"), False),
    ("forwarded rows", lambda one: one.counted("forwarded_rows"), False),
    ("ghost rows", lambda one: one.counted("ghost_rows", ("U", "V", "S", "IT")), False),
    ("ROW compression, user tables", compressed("row"), False),
    ("PAGE compression, user tables", compressed("page"), False),
    ("partitioned tables", lambda one: one.partitions(lambda table: table["partition"] > 1), False),
    ("columnstore indexes", of_type("columnstore"), False),
    ("XML indexes", lambda one: one.internal_tables("xml_index_nodes_"), False),
    ("spatial indexes", lambda one: one.internal_tables("extended_index_"), False),
    ("memory-optimized tables", lambda one: "table.memory-optimized" in one.limits, False),
    ("FILESTREAM columns", lambda one: "filestream.files" in one.limits, False),
    ("accelerated database recovery: pages of the version store", lambda one: one.internal("persistent_version_store", "pages"), False),
    ("Query Store with queries", lambda one: one.internal("plan_persist_query", "rows"), False),
    ("Service Broker messages in queues", lambda one: one.internal("queue_messages", "rows"), False),
    ("index builds that may be paused", lambda one: "index.build-paused" in one.limits, False),
    ("ledger tables with rows", lambda one: one.internal("ledger_tables_history", "rows"), False),
]


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def by(groups, key):
    counts = {}
    for one in groups:
        counts[key(one)] = counts.get(key(one), 0) + 1
    return ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "none"


def both(made):
    return [one for one in made if not one.of_backup], [one for one in made if one.of_backup]


def seen(made, incomplete):
    """The table of what the files are, and the sentences after it."""
    columns = both(made)
    sizes = lambda group: sorted(one.bytes / MB for one in group) or [0.0]
    total = lambda what: [number(sum(one.summary[what] or 0 for one in group)) for group in columns]
    verified = lambda what: [number(sum(one.summary["verified"][what] for one in group)) for group in columns]
    of = lambda cell: [cell(group) for group in columns]
    rows = [
        ["databases", *of(lambda group: number(len(group)))],
        ["sources (public repositories)", *of(lambda group: number(len({one.source for one in group})))],
        ["together", *of(lambda group: f"{number(round(sum(sizes(group))))} MB")],
        ["smallest, median, largest", *of(lambda group: f"{sizes(group)[0]:.1f}, {statistics.median(sizes(group)):.1f}, {sizes(group)[-1]:.1f} MB")],
        ["by release", *of(lambda group: by(group, lambda one: one.release))],
        ["shut down cleanly", *of(lambda group: by(group, lambda one: {True: "yes", False: "no"}.get(one.run["clean_shutdown"], "unknown")))],
        ["PAGE_VERIFY", by(columns[0], lambda one: one.info.get("page_verify") or "unknown"), "not shown by a label"],
        ["pages in use", *total("pages_allocated")],
        ["rows", *verified("rows")],
        ["index rows compared with their table", *verified("index_rows")],
        ["values of columns verified", *verified("column_values")],
        ["**findings**", *of(lambda group: number(sum(one.summary["findings"] for one in group)))],
        ["complete: nothing was left unverified", *of(lambda group: number(sum(one.summary["complete"] for one in group)))],
    ]
    yield from table(["", "data files", "full backups"], rows)
    yield ""
    sources = len({one.source for one in made})
    yield f"Both together have {number(sources)} sources. {incomplete} backups of which a stripe is missing are not counted."
    yield ""
    counts = []
    for name, often, of_data_files in FEATURES:
        groups = [[int(often(one)) for one in group] for group in columns]
        having = [sum(count > 0 for count in group) for group in groups]
        cells = [number(having[0]), "not counted" if of_data_files else number(having[1])]
        counts.append((name, cells, sum(having), max((max(group, default=0) for group in groups), default=0)))
    rows = [[name, *cells, number(most)] for name, cells, having, most in counts if having]
    yield from table(["databases with", "data files", "full backups", "most in one database"], rows)
    yield ""
    never = [name for name, _, having, _ in counts if not having]
    yield f"**Never seen** in any of these files: {'; '.join(never) or 'nothing of the list'}."


def confirmed(made):
    """The counts for docs/assumptions.md: name, databases with it, those of them with a finding."""
    files = [one for one in made if not one.of_backup]
    feature = {name: often for name, often, _ in FEATURES}
    rows = [
        ("accelerated database recovery is possible (2019 and later)", made, lambda one: one.run["db_version"] >= VERSION_2019),
        ("its version store has pages", made, feature["accelerated database recovery: pages of the version store"]),
        ("index builds can be paused (2017 and later)", made, lambda one: one.run["db_version"] >= VERSION_2017),
        ("an index build may be paused", made, feature["index builds that may be paused"]),
        ("partitioned tables", made, feature["partitioned tables"]),
        ("ghost rows", made, feature["ghost rows"]),
        ("forwarded rows", made, feature["forwarded rows"]),
        ("pages that are not in use and not zeros", files, lambda one: one.stale_pages()),
        ("a file that a user shrank", files, lambda one: one.header.get("UserShrinkSize", NEVER_SHRUNK) not in (NEVER_SHRUNK, "")),
        ("sectors of 4096 bytes", files, lambda one: one.header.get("SectorSize") == "4096"),
        ("sectors of 512 bytes", files, lambda one: one.header.get("SectorSize") == "512"),
        ("not shut down cleanly, log applied", files, lambda one: (one.run.get("recovery") or {}).get("state") == "done"),
        ("TDE", made, feature["encrypted (TDE)"]),
        ("FILESTREAM columns", made, feature["FILESTREAM columns"]),
        ("memory-optimized tables", made, feature["memory-optimized tables"]),
        ("columnstore indexes", made, feature["columnstore indexes"]),
        ("Query Store with queries", made, feature["Query Store with queries"]),
        ("Query Store tables in the catalog", made, lambda one: any((table["name"] or "") == "plan_persist_query" for table in one.tables)),
    ]
    lines_of = []
    for name, group, holds in rows:
        having = [one for one in group if holds(one)]
        found = sum(one.summary["findings"] for one in having)
        lines_of.append([name, f"{number(len(having))} of {number(len(group))}", number(len({one.source for one in having})), number(found)])
    yield from table(["state of a database", "databases", "sources", "findings in them"], lines_of)


def replace(page, name, content):
    path = ROOT / "docs" / page
    begin, end = f"<!-- {name}: written by benches/seen.py -->\n", f"<!-- end of {name} -->"
    text = path.read_text()
    parts = re.split(f"({re.escape(begin)}).*?({re.escape(end)})", text, flags=re.S)
    if len(parts) != 4:
        sys.exit(f"{path}: the marks of '{name}' are missing")
    before, begin, end, after = parts
    path.write_text(f"{before}{begin}\n{content}\n\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default=str(ROOT / "target/release/mdfsck"))
    parser.add_argument("--write", action="store_true", help="write the tables to docs/trust.md and docs/assumptions.md")
    arguments = parser.parse_args()
    made, incomplete = subjects(arguments.program, arguments.folder)
    refused = [one for one in made if not one.is_checked()]
    for one in refused:
        print(f"not checked: {one.paths[0]}", file=sys.stderr)
    made = [one for one in made if one.is_checked()]
    for name, page, content in [("seen", "trust.md", seen(made, incomplete)), ("confirmed", "assumptions.md", confirmed(made))]:
        text = "\n".join(content)
        if arguments.write:
            replace(page, name, text)
        else:
            print(f"{text}\n")
    findings = [one.paths[0] for one in made if one.summary["findings"]]
    for path in findings:
        print(f"findings: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
