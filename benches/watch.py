"""mdfsck watch under all that may happen: backups that arrive in random order, some growing slowly, some with late stripes, some that
vanish or are renamed, while the watcher is killed again and again. Every whole backup must be checked exactly once, and nothing
half-written may be called corrupt. Then metrics are rewritten while they are read.

    cargo build --release && python3 benches/watch.py [--backups 300] [--kills 50] [--rewrites 1000] [--mdfsck target/release/mdfsck]
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--backups", type=int, default=300)
parser.add_argument("--kills", type=int, default=50)
parser.add_argument("--rewrites", type=int, default=1000)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--mdfsck", default="target/release/mdfsck")
options = parser.parse_args()
mdfsck = str(Path(options.mdfsck).resolve())
dice = random.Random(options.seed)


def run(*arguments, **more):
    return subprocess.run([mdfsck, *map(str, arguments)], capture_output=True, text=True, **more)


def make(folder):
    """Backups: (name, files, what happens to it)."""
    all = []
    for number in range(options.backups):
        base = folder / f"made{number}"
        kind = dice.choices(["plain", "slow", "stripes", "gone", "renamed", "cut"], [50, 12, 15, 8, 10, 5])[0]
        run("lab", "new", base, "--size", "9MB", "--seed", number + 1, check=True)
        more = ["--stripes", 3] if kind == "stripes" else []
        if number % 4 == 1:
            more.append("--compressed")
        run("lab", "backup", base, "-o", folder / f"b{number}", *more, check=True)
        shutil.rmtree(base)
        all.append((f"b{number}", sorted((folder / f"b{number}").glob("*.bak")), kind))
    return all


def arrive(backups, target, done):
    """Puts all backups into the folder, several at a time."""

    def copy(file, to, pause):
        with open(file, "rb") as source, open(to, "wb") as out:
            while piece := source.read(700_000):
                out.write(piece)
                out.flush()
                time.sleep(pause)

    def bring(queue):
        while queue:
            name, files, kind = queue.pop()
            (target / name[:2]).mkdir(exist_ok=True)
            place = target / name[:2]
            paths = [place / f"{name}_{stripe}.bak" for stripe in range(len(files))]
            if kind == "cut":
                paths[0].write_bytes(files[0].read_bytes()[: files[0].stat().st_size // 2])
                continue
            for file, path in zip(files, paths):
                copy(file, path, {"slow": 0.4, "stripes": 0.01}.get(kind, 0.005))
                if kind == "stripes":
                    time.sleep(2)
            if kind == "gone":
                time.sleep(dice.random() * 3)
                paths[0].unlink()
            elif kind == "renamed":
                time.sleep(dice.random() * 3)
                paths[0].rename(place / f"renamed_{name}.bak")

    queue = list(backups)
    dice.shuffle(queue)
    threads = [threading.Thread(target=bring, args=(queue,)) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    done.set()


def watch(folder, *more):
    return [mdfsck, "watch", str(folder / "in"), "--history", str(folder / "h.db"), "--settle", "1s", *more]


def survive(folder, backups):
    done = threading.Event()
    arriving = threading.Thread(target=arrive, args=(backups, folder / "in", done))
    arriving.start()
    killed = 0
    while not done.is_set() or killed < options.kills:
        service = subprocess.Popen(
            watch(folder, "--every", "1s", "--jobs", "3", "--memory", "600MB"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if killed >= options.kills:
            done.wait()
        else:
            time.sleep(0.5 + dice.random() * 3)
            killed += 1
        service.send_signal(signal.SIGKILL)
        service.wait()
    arriving.join()
    last = run(*watch(folder, "--once", "--json")[1:])
    summary = json.loads(last.stdout.splitlines()[-1])
    print(f"killed {killed} times; last run: status {last.returncode}, {summary['waiting']} waiting, {summary['ready']} ready")
    return summary


def judge(folder, backups, summary):
    db = sqlite3.connect(folder / "h.db")
    rows = db.execute(
        "SELECT b.paths, b.state, b.verdict, b.reason, b.losses, (SELECT count(*) FROM run r WHERE r.image = (SELECT image FROM run"
        " WHERE id = b.run)) FROM backup b"
    ).fetchall()
    of = {}
    for paths, state, verdict, reason, losses, runs in rows:
        name = Path(json.loads(paths)[0]).name.removeprefix("renamed_").split("_")[0].removesuffix(".bak")
        of.setdefault(name, []).append((state, verdict, reason, losses, runs))
    wrong, once = [], 0
    for name, _, kind in backups:
        found = of.get(name, [])
        checked = [entry for entry in found if entry[0] == "done" and entry[1] == "sound" and entry[4] == 1]
        corrupt = [entry for entry in found if entry[1] == "corrupt"]
        if kind == "cut":
            good = not corrupt and not checked
        elif kind == "gone":
            good = not corrupt and len(checked) <= 1
        else:
            good = len(checked) == 1 and not corrupt
            once += good
        if not good:
            wrong.append((name, kind, found))
    total = db.execute("SELECT count(*) FROM run").fetchone()[0]
    failed = db.execute("SELECT count(*) FROM run WHERE error IS NOT NULL").fetchone()[0]
    done = sum(state == "done" for entries in of.values() for state, *_ in entries)
    print(f"{once} whole backups checked exactly once; {total} runs for {done} done, {failed} failed; {sum(e[3] for v in of.values() for e in v)} checks were lost to kills")
    if wrong or total != done + failed or summary["ready"]:
        print("WRONG:", wrong[:10])
        return 1
    return 0


def metrics(folder):
    """Rewrites the metrics while they are read: every reading is whole."""
    path, stop, broken, read = folder / "m.prom", threading.Event(), [], [0]
    (folder / "empty").mkdir()
    rewrite = [mdfsck, "watch", str(folder / "empty"), "--history", str(folder / "h.db"), "--once", "--settle", "1s", "--metrics", str(path)]
    subprocess.run(rewrite, check=False, capture_output=True)
    promtool = shutil.which("promtool")

    def reading():
        while not stop.is_set():
            text = path.read_text()
            read[0] += 1
            if not text.endswith("\n") or "mdfsck_watch_status" not in text:
                broken.append(text[-80:])
            if promtool and read[0] % 2000 == 1:
                checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
                if checked.returncode:
                    broken.append(checked.stderr)

    thread = threading.Thread(target=reading)
    thread.start()
    for _ in range(options.rewrites):
        subprocess.run(rewrite, check=False, capture_output=True)
    stop.set()
    thread.join()
    how = "promtool agrees" if promtool else "promtool is not installed: skipped"
    print(f"metrics: {options.rewrites} times rewritten, {read[0]} times read, {len(broken)} broken; {how}")
    if broken:
        print(broken[:3])
    return len(broken)


with tempfile.TemporaryDirectory(prefix="mdfsck-watch-") as name:
    folder = Path(name)
    (folder / "in").mkdir()
    begun = time.time()
    backups = make(folder)
    kinds = {kind: sum(k == kind for _, _, k in backups) for _, _, kind in backups}
    print(f"{len(backups)} backups made in {time.time() - begun:.0f} s: {kinds}")
    begun = time.time()
    summary = survive(folder, backups)
    print(f"arrived and checked in {time.time() - begun:.0f} s")
    status = judge(folder, backups, summary)
    status |= 1 if metrics(folder) else 0
sys.exit(status)
