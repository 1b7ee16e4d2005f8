"""A PostgreSQL cluster with one table, for pg_amcheck."""

import os
import shutil
import statistics
import subprocess
import sys
import time

from measured import run, tell


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
