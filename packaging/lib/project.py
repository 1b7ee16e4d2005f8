"""What is packed: the checkout, its version and commit, and how commands are run."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "packaging" / "out"
# Nothing but build products; may be removed at any time.
WORK = ROOT / "target" / "packaging"
TOOLS = ROOT / "target" / "packaging-tools" / "bin"

NAME = "mdfsck"
SUMMARY = "Proves whether a SQL Server database is sound: DBCC CHECKDB without SQL Server"
DESCRIPTION = """mdfsck reads the data files of a SQL Server database, or its backups, and prints
what DBCC CHECKDB would print: without SQL Server, without a restore, and
without writing to the files that it reads."""
LICENCE = "Apache-2.0"
MAINTAINER = "The mdfsck authors <mdfsck@localhost>"


class Failed(Exception):
    """A step failed; the text says why and what to do."""


def run(command, **options):
    """Runs a command; returns what it printed."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, **options)
    except FileNotFoundError as error:
        raise Failed(f"{command[0]}: not found; packaging/setup installs it") from error
    except subprocess.CalledProcessError as error:
        raise Failed(f"{' '.join(command)}: exit status {error.returncode}") from error
    return done.stdout


def say(text):
    """Progress goes to stderr."""
    print(f"packaging: {text}", file=sys.stderr, flush=True)


@cache
def version():
    found = re.search(r'^\[workspace\.package\]\s+version = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    if not found:
        raise Failed("Cargo.toml: no version of the workspace")
    return found.group(1)


@cache
def commit():
    """The commit, marked if files differ from it; "unknown" outside a checkout."""
    try:
        name = run(["git", "rev-parse", "HEAD"], cwd=ROOT, stderr=subprocess.DEVNULL).decode().strip()
        changed = run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT)
    except Failed:
        return "unknown"
    return f"{name} with changes" if changed.strip() else name


@cache
def epoch():
    """The time that every file in every package has: that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    try:
        return int(run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stderr=subprocess.DEVNULL))
    except Failed as error:
        raise Failed("no commit to take the time of packed files from; set SOURCE_DATE_EPOCH") from error


def environment(**more):
    """The environment of every tool: nothing of the machine's language, zone or clock."""
    kept = dict(os.environ)
    kept.update(LC_ALL="C.UTF-8", TZ="UTC", SOURCE_DATE_EPOCH=str(epoch()))
    kept.update({name: str(value) for name, value in more.items()})
    return kept


def prefer(system, other):
    """A tool of the system where it is there, as a string; otherwise the one on PATH."""
    return system if Path(system).exists() else other


# The compiler of the distribution comes with the sources of its standard library.
RUSTC = os.environ.get("RUSTC") or prefer("/usr/bin/rustc", "rustc")
CARGO = os.environ.get("CARGO") or prefer("/usr/bin/cargo", "cargo")


def cargo(*arguments, **more):
    """Runs cargo in the checkout; returns what it printed."""
    # Its own sources of a standard library are for every target; stable compilers keep that behind this variable.
    return run([CARGO, *arguments], cwd=ROOT, env=environment(RUSTC=RUSTC, RUSTC_BOOTSTRAP=1, **more))


@cache
def library():
    """The sources of the standard library."""
    return Path(run([RUSTC, "--print", "sysroot"], env=environment()).decode().strip()) / "lib/rustlib/src/rust"


# What a build from source leaves out, as it takes long to compile.
FEATURES = ["--features", "cloud"]


def features(manifest):
    """Those of the program; the standard library has none of them."""
    return FEATURES if manifest == PROGRAM else []


@cache
def metadata(manifest):
    """What cargo knows of a package and all that it may use."""
    return json.loads(cargo("metadata", "--locked", "--format-version", "1", "--manifest-path", manifest, *features(manifest)))


@cache
def linked(manifest, target):
    """The packages that a package links for a target, itself among them, as cargo's metadata has them."""
    printed = cargo("tree", "--locked", "--manifest-path", manifest, "--edges", "normal,no-proc-macro", "--target", target,
                    "--prefix", "none", "--format", "{p}", *features(manifest)).decode()
    wanted = {tuple(line.split()[:2]) for line in printed.splitlines() if line.strip()}
    known = metadata(manifest)["packages"]
    found = [package for package in known if (package["name"], f"v{package['version']}") in wanted]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


PROGRAM = ROOT / "crates" / NAME / "Cargo.toml"


def standard_library():
    return library() / "library/std/Cargo.toml"


def foreign(target):
    """The packages of others in the executable for a target: those that it uses, and those of the standard library."""
    both = [*linked(PROGRAM, target), *linked(standard_library(), target)]
    found = {(package["name"], package["version"]): package for package in both if package["source"]}
    return [found[key] for key in sorted(found)]
