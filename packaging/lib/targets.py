"""Executables: which there are, and how each is built."""

import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from project import CARGO, FEATURES, NAME, ROOT, TOOLS, WORK, Failed, cargo, commit, environment, library, run, say, version

PROFILE = "dist"
# As SQL Server counts.
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Target:
    """An executable."""

    # Its name on the command line of packaging/build.
    name: str
    triple: str
    # Names of the architecture in packages of each kind.
    deb: str
    rpm: str
    wheel: str
    container: str
    most_bytes: int

    @property
    def is_windows(self):
        return self.system == "windows"

    @property
    def system(self):
        return self.name.split("-")[0]

    @property
    def file_name(self):
        return f"{NAME}.exe" if self.is_windows else NAME


MANYLINUX = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"
TARGETS = [
    Target("linux-x86_64", "x86_64-unknown-linux-musl", "amd64", "x86_64", MANYLINUX.format("x86_64"), "amd64",
           16 * MEGABYTE),
    Target("linux-aarch64", "aarch64-unknown-linux-musl", "arm64", "aarch64", MANYLINUX.format("aarch64"), "arm64",
           16 * MEGABYTE),
    Target("windows-x86_64", "x86_64-pc-windows-gnu", "", "", "win_amd64", "", 17 * MEGABYTE),
]
# The one that runs on the machine that builds: it prints its completions and manual pages.
HOST = TARGETS[0]


def remapped():
    """Paths of this machine, and what they are called in the executable."""
    home = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
    # The last that fits counts.
    pairs = [(home, "/cargo"), (ROOT, "/mdfsck"), (WORK, "/build"), (library(), "/rust"), (library().resolve(), "/rust")]
    return [f"--remap-path-prefix={path}={name}" for path, name in pairs]


def resource():
    """What Windows shows of the executable, and that it takes long paths: compiled for its linker."""
    numbers = version().split("-")[0].replace(".", ",")
    folder = WORK / "windows"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ["mdfsck.rc", "mdfsck.manifest"]:
        shutil.copyfile(ROOT / "packaging" / "windows" / name, folder / name)
    run(["x86_64-w64-mingw32-windres", f"-DVERSION_NUMBERS={numbers},0", f"-DVERSION={version()}",
         "mdfsck.rc", "-O", "coff", "-o", "mdfsck.res.o"], cwd=folder, env=environment())
    return folder / "mdfsck.res.o"


@cache
def executable(target):
    """Builds the executable for a target; returns its path."""
    say(f"{target.name}: {target.triple}")
    flags = remapped()
    if target.is_windows:
        command = ["build"]
        # A linker that is named is not told to strip, and symbols of import tables hold the folder's name.
        flags += ["-Clink-arg=-Wl,--no-insert-timestamp", "-Clink-arg=-Wl,--strip-all", f"-Clink-arg={resource().relative_to(ROOT)}",
                  f"-Clinker={ROOT / 'packaging' / 'windows' / 'link'}", "-Clinker-flavor=gcc"]
    else:
        # Its own copies of the C library's start files come with the linker.
        command = ["zigbuild"]
        flags += ["-Clink-self-contained=no"]
    arguments = [*command, "--profile", PROFILE, "--locked", "--package", NAME, "--bin", NAME,
                 *FEATURES,
                 # Without symbols a backtrace says nothing.
                 "-Zbuild-std=std,panic_unwind", "-Zbuild-std-features=panic-unwind", "--target", target.triple]
    cargo(*arguments,
          PATH=f"{TOOLS}{os.pathsep}{os.environ.get('PATH', '')}",
          CARGO=CARGO,
          CARGO_TARGET_DIR=WORK,
          CARGO_ENCODED_RUSTFLAGS="\x1f".join(flags),
          # Nothing unwinds through SQLite.
          **{f"CFLAGS_{target.triple.replace('-', '_')}": "-fno-asynchronous-unwind-tables -fno-unwind-tables"},
          CARGO_ZIGBUILD_CACHE_DIR=WORK / "zigbuild",
          ZIG_GLOBAL_CACHE_DIR=WORK / "zig",
          MDFSCK_COMMIT=commit(),
          MDFSCK_BUILD=PROFILE)
    path = WORK / target.triple / PROFILE / target.file_name
    size = path.stat().st_size
    if size > target.most_bytes:
        raise Failed(f"{path}: {size} bytes, more than {target.most_bytes}")
    return path
