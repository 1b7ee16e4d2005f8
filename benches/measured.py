"""What yardsticks.py measures by running one program after another: forms of rows, backups, small databases, many tables."""

import ctypes
import os
import pathlib
import platform
import re
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time

MB = 1 << 20
# wimlib's number for XPRESS with Huffman codes, and the largest block of a backup.
WIM_XPRESS = 1
BLOCK_BYTES = 1 << 16


def run(command, **options):
    """Runs a command and gives its output; what it says besides is shown when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode & ~16:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def tell(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def machine():
    """The class of this machine: its cores, their widest instructions, whether it is virtual, and its memory."""
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    flags = flags[1].split() if flags else []
    widest = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), None)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores = f"{os.cpu_count()} cores of {platform.machine().replace('_', '-')}" + (f" with {widest}" if widest else "")
    return ", ".join([cores, *(["virtual"] if "hypervisor" in flags else []), f"{memory:.0f} GB"])


def of_children(command, runs=1):
    """Median processor and elapsed seconds of a command, and its output."""
    spent, elapsed, output = [], [], ""
    for _ in range(runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        elapsed.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        output = done.stdout
        # Bit 16, incomplete, is no failure.
        if done.returncode & ~16:
            sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return statistics.median(spent), statistics.median(elapsed), output


def cargo_bench(repository, crate, name, *words):
    command = ["cargo", "bench", "-p", crate, "--bench", name, *(["--", *words] if words else [])]
    done = subprocess.run([str(word) for word in command], cwd=repository, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr[-2000:]}")
    return done.stdout


def row_forms(repository):
    """Nanoseconds a row by the form of the rows."""
    output = cargo_bench(repository, "mdfsck-check", "row_forms")
    lines = (re.match(r"(.{34})\s+(\d+)\s+\d+\s+\d+$", line) for line in output.splitlines())
    return {found[1].strip(): float(found[2]) for found in lines if found}


def decoder(repository, backup, blocks):
    """MB of content per second of the records of a compressed backup, on one thread. The blocks are kept for other decoders."""
    output = cargo_bench(repository, "mdfsck-source", "xpress", backup, blocks)
    found = re.search(r"records of the backup\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)", output)
    return float(found[1]), float(found[3])


def reference_decoder(library, blocks, runs=15):
    """The same of wimlib, whose format for chunks of images is that of the blocks."""
    wim = ctypes.CDLL(str(library))
    handle = ctypes.c_void_p()
    if wim.wimlib_create_decompressor(WIM_XPRESS, ctypes.c_size_t(BLOCK_BYTES), ctypes.byref(handle)):
        sys.exit(f"{library}: no decompressor")
    content, at, calls, size = blocks.read_bytes(), 0, [], 0
    while at < len(content):
        stored, expanded = struct.unpack_from("<II", content, at)
        block = ctypes.create_string_buffer(content[at + 8 : at + 8 + stored], stored)
        calls.append((block, ctypes.c_size_t(stored), ctypes.c_size_t(expanded)))
        at += 8 + stored
        size += expanded
    out, times = ctypes.create_string_buffer(BLOCK_BYTES), []
    for _ in range(runs):
        start = time.perf_counter()
        for block, stored, expanded in calls:
            if wim.wimlib_decompress(block, stored, out, expanded, handle):
                sys.exit(f"{library}: a block that it does not decompress")
        times.append(time.perf_counter() - start)
    return size / 1e6 / statistics.median(times)


def backup(program, database, folder, *options):
    """A backup of a database of the lab; written once."""
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        of_children([program, "lab", "backup", database, "-o", folder / "files", *options])
        (folder / "built").touch()
    return sorted((folder / "files").iterdir())


def reads_to_open(program, files):
    """Calls of the system that read, to open a backup and look at one page of it."""
    command = ["strace", "-f", "-c", "-e", "trace=pread64,read", program, "page", "1:9", *files]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    lines = [line.split() for line in done.stderr.splitlines()]
    return sum(int(words[3]) for words in lines if len(words) >= 5 and words[-1] in ("pread64", "read"))


def small_backups(program, work, count=40, runs=5):
    """Processor seconds of one check of a folder with many small backups."""
    folder = work / "small-backups"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "files").mkdir(parents=True)
        for seed in range(1, count + 1):
            # 3 MB as a backup.
            of_children([program, "lab", "new", folder / "one", "--schema", "entries", "--size", "9728KB", "--seed", seed])
            of_children([program, "lab", "backup", folder / "one", "-o", folder / "backup"])
            (folder / "backup" / "full.bak").rename(folder / "files" / f"{seed}.bak")
            shutil.rmtree(folder / "one")
        (folder / "built").touch()
    spent, _, _ = of_children([program, "check", "--format", "json", folder / "files"], runs)
    return spent, sum(file.stat().st_size for file in (folder / "files").iterdir())


def many_tables(program, work, tables, indexes, runs=1):
    """Seconds of a check of a database of many tables, most of them empty, on one thread."""
    folder = work / f"tables-{tables}-{indexes}"
    if not (folder / "built").exists():
        shutil.rmtree(folder, ignore_errors=True)
        options = ["--tables", tables, "--indexes", indexes, "--rows", 0]
        of_children([program, "lab", "new", folder / "files", *options])
        (folder / "built").touch()
    return of_children([program, "check", "--format", "json", "--maxdop", 1, folder / "files"], runs)[1]
