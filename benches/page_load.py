#!/usr/bin/env python3
"""How large pages are, and how long a browser takes until they are ready (Chromium, at 1100 and 400 pixels).

    mkdir pages; MDFSCK_PAGES=$PWD/pages cargo test -p mdfsck-report --lib -- --ignored pages_of_large
    benches/page_load.py pages/*.html

No extent is like the next in the databases of these pages, as far as that can be. Those of 10^6 and 10^8 pages have 500 findings on 300
tables; `most.html` has 100,000 on 5,000 tables, 20,000 things not verified, 2,000 files, and names of thousands of characters.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "chrome"]
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"]


class Browser:
    """A browser that is told what to do through a pipe."""

    def __init__(self, profile):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            raise SystemExit("no Chromium on the PATH")
        # It reads commands from descriptor 3 and answers on 4.
        start = ["sh", "-c", 'exec "$0" "$@" 3<&0 4>&1 >/dev/null 2>&1 </dev/null', program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.asked, self.received = 0, b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        # What other programs take of the processors does not count.
        self.call("Performance.enable", timeDomain="threadTicks")

    session = None

    def call(self, method, **parameters):
        self.asked += 1
        command = {"id": self.asked, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        self.process.stdin.write(json.dumps(command).encode() + b"\0")
        self.process.stdin.flush()
        while True:
            while b"\0" not in self.received:
                piece = os.read(self.process.stdout.fileno(), 1 << 20)
                assert piece, "the browser has ended"
                self.received += piece
            answer, self.received = self.received.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == self.asked:
                assert "error" not in answer, answer
                return answer["result"]

    def ready(self, url, width):
        """Seconds from the start of the navigation until the page is ready, and processor seconds of its thread."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")
        spent = self.spent()
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            asked = "location.href.startsWith('file:') && document.documentElement.dataset.ready || null"
            value = self.call("Runtime.evaluate", expression=asked)["result"].get("value")
            if value:
                return int(value) / 1000, self.spent() - spent
            time.sleep(0.05)
        raise SystemExit(f"{url}: not ready within a minute")

    def spent(self):
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        for page in arguments.pages:
            for width in [1100, 400]:
                runs = [browser.ready(page.resolve().as_uri(), width) for _ in range(arguments.runs)]
                (times, spent) = zip(*runs)
                print(f"{page}: {page.stat().st_size:,} bytes, at {width} pixels ready after {statistics.median(times):.2f} s "
                      f"({min(times):.2f} to {max(times):.2f}), {statistics.median(spent):.2f} s of processor time of its thread")
        browser.process.kill()


if __name__ == "__main__":
    main()
