#!/usr/bin/env python3
"""Requests per second of the estate page of `mdfsck serve`, and its memory, while a check runs that records its ranges.

The history is that of a real check, whose database is there as often as asked for.
"""

import argparse
import os
import random
import re
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from pathlib import Path

NAMES = ["Sales", "Orders", "Payroll", "Ledger", "Warehouse", "CRM", "Tickets", "Archive", "Portal", "Billing", "HR", "Fleet"]
TABLES = ["database", "source", "image", "run", "coverage", "object", "relation", "finding", "finding_change", "not_verified"]


def estate(path, count, seed=1):
    """Copies the databases of a history until there are `count`, of many ages; the first ones stay as they are."""
    history = sqlite3.connect(path)
    pick = random.Random(seed)
    columns = {table: [row[1] for row in history.execute(f"PRAGMA table_info({table})")] for table in TABLES}
    rows = {table: history.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    known = [row[0] for row in rows["database"]]
    step = 1 + max(max((row[0] for row in rows[table]), default=0) for table in ["database", "source", "image", "run", "object", "finding"])
    moved = {"database": {"id"}, "source": {"id", "database"}, "image": {"id", "source"}, "run": {"id", "database", "image"},
             "coverage": {"database", "image"}, "object": {"id", "database"}, "relation": {"object", "image"},
             "finding": {"id", "source", "last_run", "last_image"}, "finding_change": {"run", "finding"}, "not_verified": {"run"}}
    dates = {"started", "ended", "taken_at", "closed_at", "read_at", "known_since", "looked_at", "oldest_part_at", "first_seen", "last_seen",
             "last_looked", "since"}
    of_database = {table: rows_of(history, table, known) for table in TABLES}
    copies = 0
    while len(known) + copies < count:
        copies += 1
        # Most databases of an estate are sound: most copies are of the last one.
        model = known[-1] if pick.random() < 0.9 else pick.choice(known)
        days = pick.choice([0, 0, 0, 1, 1, 2, 3, 5, 9, 20])
        for table in TABLES:
            for row in of_database[table].get(model, []):
                values = dict(zip(columns[table], row))
                for name, value in values.items():
                    if name in moved[table] and value is not None:
                        values[name] = value + copies * step
                    elif name in dates and value is not None:
                        values[name] = history.execute("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?, ?)", (value, f"-{days} days")).fetchone()[0]
                if table == "database":
                    values["name"] = f"{NAMES[copies % len(NAMES)]}_{copies}"
                    values["family"] = f"{values['family']}-{step}-{copies}"
                names = ", ".join(f'"{name}"' for name in values)
                history.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", list(values.values()))
    history.commit()
    history.close()


def rows_of(history, table, databases):
    """The rows of a table by database."""
    way = {"database": "id", "source": "database", "run": "database", "coverage": "database", "object": "database",
           "image": "(SELECT s.database FROM source s WHERE s.id = t.source)",
           "relation": "(SELECT o.database FROM object o WHERE o.id = t.object)",
           "finding": "(SELECT s.database FROM source s WHERE s.id = t.source)",
           "finding_change": "(SELECT r.database FROM run r WHERE r.id = t.run)",
           "not_verified": "(SELECT r.database FROM run r WHERE r.id = t.run)"}[table]
    return {database: history.execute(f"SELECT t.* FROM {table} t WHERE {way} = ?", (database,)).fetchall() for database in databases}


def memory(pid):
    """Resident bytes of a process: now, and at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{name}:\s+(\d+) kB", status).group(1)) * 1024 for name in ("VmRSS", "VmHWM")]


def processor(pid):
    """Processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(port, end, counts, at):
    """Requests the estate page until the end, on one connection as long as it lasts."""
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    connection, count = None, 0
    while time.monotonic() < end:
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(request)
        data = connection.recv(1 << 16)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        left = int(re.search(rb"Content-Length: (\d+)", head).group(1)) - len(body)
        while left > 0:
            left -= len(connection.recv(1 << 20))
        count += 1
        if b"Connection: close" in head:
            connection.close()
            connection = None
    counts[at] = count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/mdfsck", help="the executable")
    parser.add_argument("--databases", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--size", default="1GB", help="size of the database that is checked meanwhile")
    parser.add_argument("--make", metavar="FILE", help="only make a history of this estate, with FILE as its start")
    arguments = parser.parse_args()
    if arguments.make:
        return estate(arguments.make, arguments.databases)
    program = str(Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *command, **options: subprocess.run([program, *command], cwd=folder, stdout=subprocess.DEVNULL, **options)
        run("lab", "new", "sound", "--size", "60MB", check=True)
        run("lab", "damage", "sound", "-o", "hurt", "--kind", "key-order", "--seed", "3", check=True)
        run("lab", "new", "large", "--size", arguments.size, "--seed", "2", check=True)
        for name in ["hurt", "hurt", "sound"]:
            run("check", name, "--history", "h.db", stderr=subprocess.DEVNULL)
        estate(Path(folder) / "h.db", arguments.databases)
        # The server has one core, the clients another.
        cores = sorted(os.sched_getaffinity(0))
        server = subprocess.Popen([program, "serve", "--history", "h.db", "--listen", "127.0.0.1:0", "--no-token"], cwd=folder, stdout=subprocess.PIPE,
                                  preexec_fn=lambda: os.sched_setaffinity(0, cores[:1]))
        port = int(re.search(rb":(\d+)/", server.stdout.readline()).group(1))
        check = subprocess.Popen(f"while :; do {program} check large --history h.db --window 5s --range 8MB --progress none; done",
                                 shell=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            time.sleep(1)
            counts = [0] * arguments.connections
            before, begun = processor(server.pid), time.monotonic()
            threads = [threading.Thread(target=load, args=(port, begun + arguments.seconds, counts, at)) for at in range(len(counts))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - begun
            spent = processor(server.pid) - before
            now, most = memory(server.pid)
            print(f"{sum(counts) / seconds:.0f} requests per second of the estate of {arguments.databases} databases, "
                  f"{sum(counts) / spent:.0f} per second of processor time; memory {now >> 20} MB, at most {most >> 20} MB")
        finally:
            os.killpg(check.pid, 9)
            server.kill()


if __name__ == "__main__":
    main()
