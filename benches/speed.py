#!/usr/bin/env python3
"""Keeps the history of what yardsticks.py measured (docs/speed.tsv) and writes docs/speed.md and docs/pictures/speed.svg from it.

Run by itself it writes the page and the chart again."""

import collections
import html
import pathlib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
HISTORY = REPOSITORY / "docs" / "speed.tsv"
PAGE = REPOSITORY / "docs" / "speed.md"
CHART = REPOSITORY / "docs" / "pictures" / "speed.svg"
COLUMNS = ("date", "machine", "id", "what", "asked", "unit", "measured", "beside")
Result = collections.namedtuple("Result", COLUMNS)

# Dimensions of the chart, in pixels.
WIDTH, LINE, LEFT, RIGHT, TOP = 940, 26, 420, 130, 56
# Bars end at this share of the target: a longer one would show nothing more.
MOST = 2.0
OLD, NEW, ASKED, INK, PALE = "#b9c4d0", "#2f6f9f", "#b3472f", "#24292f", "#57606a"


def read():
    """All results, oldest first."""
    if not HISTORY.exists():
        return []
    lines = HISTORY.read_text(encoding="utf-8").splitlines()
    return [Result(*line.split("\t")) for line in lines[1:] if line]


def record(date, machine, rows):
    """Adds the results of a run, replacing results of the same line, day and machine."""
    added = [
        Result(date, machine, row["id"], row["what"], row["bound"], row["unit"], f"{row['value']:.4g}", row["how"])
        for row in rows
        if "bound" in row
    ]
    ids = {result.id for result in added}
    kept = [result for result in read() if (result.date, result.machine) != (date, machine) or result.id not in ids]
    results = sorted(kept + added, key=lambda result: result.date)
    lines = ["\t".join(COLUMNS), *("\t".join(result) for result in results)]
    HISTORY.write_text("\n".join(lines) + "\n", encoding="utf-8")
    write()


def is_at_most(result):
    """Whether less is better: asked for as `<= number`."""
    return result.asked.startswith("<")


def asked_number(result):
    return float(result.asked.lstrip("<>= "))


def share(result):
    """The reached share of the target: 1 is all of it."""
    measured, asked = float(result.measured), asked_number(result)
    return asked / measured if is_at_most(result) else measured / asked


def series():
    """Results by id, oldest first; lines that the newest run did not measure come last."""
    by_id = collections.defaultdict(list)
    for result in read():
        by_id[result.id].append(result)
    newest = max((results[-1].date for results in by_id.values()), default="")
    return sorted(by_id.values(), key=lambda results: results[-1].date != newest)


def chart(all_series):
    """A bar for the first and the newest result of each line, as a share of what was asked."""
    scale = (WIDTH - LEFT - RIGHT) / MOST
    height = TOP + LINE * len(all_series) + 24
    asked_at = LEFT + scale
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="22" font-size="14" font-weight="600" fill="{INK}">Speed: results as a share of their targets</text>',
        f'<rect x="{LEFT}" y="30" width="10" height="8" fill="{OLD}"/>'
        f'<text x="{LEFT + 15}" y="38" fill="{PALE}">first measured</text>',
        f'<rect x="{LEFT + 120}" y="30" width="10" height="8" fill="{NEW}"/>'
        f'<text x="{LEFT + 135}" y="38" fill="{PALE}">newest</text>',
        f'<line x1="{asked_at}" y1="{TOP - 6}" x2="{asked_at}" y2="{height - 16}" stroke="{ASKED}" stroke-dasharray="3 3"/>',
        f'<text x="{asked_at}" y="{height - 4}" text-anchor="middle" fill="{ASKED}">target</text>',
    ]
    for number, results in enumerate(all_series):
        first, newest, y = results[0], results[-1], TOP + LINE * number
        out.append(f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end" fill="{INK}">{html.escape(newest.what)}</text>')
        bars = ((first, OLD, y + 1), (newest, NEW, y + 11)) if len(results) > 1 else ((newest, NEW, y + 6),)
        for result, fill, top in bars:
            width = min(share(result), MOST) * scale
            out.append(f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="9" fill="{fill}"/>')
        unit = "" if newest.unit == "x" else newest.unit
        moved = f"{first.measured} → {newest.measured} {unit}" if len(results) > 1 else f"{newest.measured} {unit}"
        out.append(f'<text x="{WIDTH - 8}" y="{y + 14}" text-anchor="end" fill="{PALE}">{html.escape(moved.strip())}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def page(all_series):
    """The page, with the newest result of each line and how it came there."""
    out = [PREFACE]
    newest = max((results[-1].date for results in all_series), default="")
    machines = sorted({results[-1].machine for results in all_series if results[-1].date == newest})
    out += [f"## Newest results\n\n{newest}, {'; '.join(machines)}.\n"]
    out += ["| what | target | measured | reached | details |", "|---|---|---|---|---|"]
    for results in all_series:
        result = results[-1]
        bound = "at most" if is_at_most(result) else "at least"
        reached = "yes" if share(result) >= 1 else f"**{share(result) * 100:.0f} %**"
        when = "" if result.date == newest else f" ({result.date})"
        out.append(
            f"| {result.what} | {bound} {asked_number(result):g} {result.unit} | {result.measured} {result.unit}{when} "
            f"| {reached} | {result.beside} |"
        )
    out += ["\n## History\n", "| what | date | measured | machine | details |", "|---|---|---|---|---|"]
    for results in all_series:
        for result in results:
            out.append(f"| {result.what} | {result.date} | {result.measured} {result.unit} | {result.machine} | {result.beside} |")
    out.append(MEASURED_AND_LEFT)
    return "\n".join(out) + "\n"


PREFACE = """# Speed

For everyone who wonders how fast a check is: this page has the targets for mdfsck, the measurements, and the programs
with which mdfsck is compared. Absolute figures can change by a factor of two within an hour, depending on the machine
and on other users of the same host; ratios of alternating runs hardly change. Each figure is the median of several runs
in one session. It is compared with a program that does the least work possible ([benches/limits](../benches/limits)),
or with a checker of another database system. `benches/yardsticks.py --record` measures again and adds the results to
docs/speed.tsv. This page and its chart are generated from docs/speed.tsv; [benches/README.md](../benches/README.md)
describes how each figure is made.

![Each result as a share of its target: first and newest measurement](pictures/speed.svg)
"""

MEASURED_AND_LEFT = """
## Measured and left alone

* **io_uring** (2026-11-26; a file of 1.95 GB that is not in the page cache, medians of 5 alternating runs; the device
  gave 0.45 GB/s). A second way of reading is worth its code only if it is at least a tenth faster than pread. io_uring
  is not: the device limits the speed of reading a file that is not in the page cache.

  | how | GB/s (slowest to fastest) | of a core |
  |---|---|---|
  | pread, 1 MB at a time, nothing done with it | 0.34 (0.18-0.45) | 0.22 |
  | io_uring through the page cache, 4 times 1 MB | 0.33 (0.28-0.45) | 0.19 |
  | io_uring past the page cache, 4 times 1 MB | 0.44 (0.43-0.69) | 0.03 |
  | io_uring past the page cache, 16 times 1 MB | 0.46 (0.44-1.08) | 0.04 |
  | `check --physical-only`, 1 thread | 0.29 (0.26-0.32) | 0.20 |
  | `check --physical-only`, 2 threads | 0.36 (0.35-0.44) | 0.25 |
  | `check --physical-only --direct`, 2 threads | 0.42 (0.37-0.47) | 0.19 |

  From the page cache io_uring is as fast as pread (`limits io`). On a device like this one, more simultaneous requests
  give more throughput. Several threads already make simultaneous requests, and `--direct` avoids the copy from the page
  cache.
* **Threads that read ahead** (2026-11-26; AMD EPYC with 2 cores, a file of 2.5 GB that is not in the page cache,
  medians of 5 alternating runs while other programs compiled). In mdfsck, each thread that reads a chunk announces to
  the system the chunk four places further on. Separate threads that only read (`--readers`) are at most as fast as
  this. The device gave up to 1 GB/s; at this speed, reading needs more than a quarter of a core.

  | how | GB/s (slowest to fastest) | of a core |
  |---|---|---|
  | pread, 1 MB at a time, nothing done with it | 0.52 (0.49-0.65) | 0.37 |
  | `check --physical-only`, 1 thread | 0.97 (0.48-1.11) | 0.48 |
  | the same, `--readers 1` | 0.83 (0.80-0.88) | 0.52 |
  | the same, `--readers 2` | 0.97 (0.57-1.02) | 0.63 |
  | `check --physical-only`, 2 threads | 0.96 (0.77-0.98) | 0.58 |
  | `check --physical-only --direct`, 1 thread | 0.41 (0.39-0.94) | 0.16 |
  | the same, `--readers 2` | 0.52 (0.31-0.54) | 0.18 |
  | the same, `--readers 4` | 0.55 (0.53-1.27) | 0.25 |
  | `check --physical-only --direct`, 2 threads | 0.56 (0.50-0.57) | 0.21 |
* **Two blocks at the same time in the decoder**: the records of a compressed backup are independent, so the work on two of
  them can overlap. This gained nothing (0.9 x): the loop is limited by the amount of work, not by waiting.
* **Compressed rows by their half-bytes** (2026-11-26): two changes were tried: computing the places of eight short
  values with one multiplication, and reading usual records without the general reader. They gained 3 % at most, and
  would have needed 300 more lines of code. No single step dominates. The expansion of a compressed row takes 125 ns: 38
  ns for converting numbers and decimals, 33 for the layout of the row, 32 for reading the record, 17 for finding the
  short values. (When this was measured, mdfsck did not yet read the headers only once per page.)
* **A mask of the columns that checks read**, so that all other columns of compressed rows need not be expanded. The
  target is reached without such a mask. With a mask, a check that forgets to list a column that it reads would miss
  damage in this column.
* **One bounds test for each record in a series of similar records**, instead of a test for each word that is read. The
  results of the tests of a series are combined in one number. This method needs fewer instructions, but is up to 3 %
  slower.
* **The packaged executable** (`packaging/build`: statically linked, profile `dist`, made by another compiler) is slower
  than the executable of the profile `release`, which gave all figures on this page. In alternating runs, the packaged
  executable reaches these shares of the speed: 0.93 in a full check, 0.86 with `--physical-only`, 0.88 with 40 small
  backups, 0.93 with 100,000 tables.
* **Moved rows without a restart**: if the shape of a record differs from that of the records before it on the page, the
  check of the page starts again. Continuing from this record instead is not faster.
* **Decoding codes of up to 10 or 12 bits, instead of 11, by one look-up** is slower: by 5 to 8 % with 10 bits, by 1 %
  with 12 bits. **BMI2** instructions for the shifts are not faster.
* **Other hashes** (2026-11-26, 2 cores of x86-64 with AVX2 and AES-NI; a loop over rows in the nearest cache, each hash
  as 128 bits that are added up, medians of 7, while other programs compiled). A hash with AES-NI is five times as fast
  as the product of 128 bits, and saves 3.7 ns per row and index. mdfsck does not use it, for two reasons. Sums must be
  the same on every machine that takes part in a check, so processors without AES-NI would have to compute the AES
  rounds with tables. And the hash would need intrinsics outside `format::simd`.

  | hash | int and bigint, ns a row | 28 bytes and bigint |
  |---|---|---|
  | product of 128 bits, three a row (the present one) | 4.6 | 6.0 |
  | AES-NI, a round for each 16 bytes and three more | 0.9 | 1.7 |
  | PCLMUL, two products | 1.9 | |
  | AVX2, products of 32 bits in lanes, three rounds | 2.9 | |

  The limit program for a full check uses the hash that is fastest on the processor. For a table with two indexes it
  reads 3.15 GB/s with VAES, 2.88 with the product of 128 bits, and 2.83 with XXH3 (2026-11-26, 2 cores of x86-64 with
  AVX-512, medians of 5).
* **Reading the words of rows without a bounds test for each** (2026-11-26, AMD EPYC; a loop over rows in the nearest
  cache, while other programs compiled; the first figure is for a row of an int and a bigint, the second for a row of 28
  bytes and a bigint): with a test for each word, a row takes 5.4 and 8.4 ns. With one test per row and a slice of the
  row, it takes 6.2 and 8.9 ns. With offsets that are clamped to the page, it takes 5.4 and 8.7 ns. Without any test, it
  takes 4.8 and 7.2 ns, but this is not possible in safe Rust.
* **Hashes of rows in lanes** (2026-11-26, 2 cores of x86-64 with AVX-512; a loop over rows in the nearest cache, best
  of 9; rows of an int and a bigint, and rows of two bigints and an int). The loop is limited by the number of its
  instructions: even without any product, it would be only 10 % faster.

  | hash | int and bigint, ns a row | two bigints and an int |
  |---|---|---|
  | product of 128 bits (the present one) | 2.6 | 3.1 |
  | the same in lanes of AVX-512, of AVX2 | 2.7, 2.8 | 3.1, 3.2 |
  | the same, 16 rows at a time in each step | 3.1 | 4.0 |
  | one product at the end in place of two | 2.4 | 3.0 |
  | sums of 64 bits in place of 128 | 2.0 | 2.7 |
  | four products of 32 bits for each two words, in lanes of AVX-512, of AVX2 | 1.6, 2.0 | 2.3, 2.7 |
  | four products of 32 bits, for one value after the other, as texts and NULLs need | 4.7 | 7.0 |

* **Files mapped into memory** (2026-11-26, the same machine): from the page cache, computing checksums reaches 16 to 22
  GB/s with a mapped file, and 9 to 11 GB/s with reads (`limits ck`). A check with `--physical-only` spends half of its
  time on the copy that mapping avoids. But an unreadable page of a mapped file ends the process, while mdfsck must
  report a failed read. And the bytes of a mapped page may change between the checksum and the checks, while all checks
  of a page must see the same bytes.
* **Reads of 1 MB from the page cache** (2026-11-26; `limits ck`, a pread and the checksum, GB/s): the best size of a
  read depends on the size of the cache of each core. If this cache is small, mdfsck reads 256 KB at a time. If the
  cache is large and the file is in memory, mdfsck reads 1 MB at a time; with this, a check needs 2 to 4 % less time.

  | cache of a core | 128 KB | 256 KB | 512 KB | 1 MB | 4 MB |
  |---|---|---|---|---|---|
  | 512 KB (while other programs compiled) | 5.3 | 7.6 | 6.0 | 5.9 | |
  | 1 MB | 8.9 | 9.1 | 9.8 | 11.0 | 11.4 |

  From a disk, mdfsck always reads 256 KB at a time. Reads of 1 MB make the system read ahead in its own way. On this
  virtual machine, reads of 1 MB gave 0.5 to 2.0 GB/s and needed 0.5 to 4.7 s of processor time for 2.5 GB. Reads of 256
  KB that were announced gave 1.0 to 1.5 GB/s and needed 1.0 to 1.5 s (2 x 10 runs in random order). If mdfsck asks the
  system before each chunk whether the chunk is in memory, the system also reads ahead in its own way. So if a chunk was
  not in memory, mdfsck asks again only after 64 chunks, then after 128, up to 4096.
* **One loop for all sums of hashed words** (2026-11-26, 2 cores of x86-64 with AVX-512; alternating runs of
  `index_rows`, cost of an index in ns a row): written as a loop, the code needs 13 ns for an int index and 17 ns for an
  index on a computed column. Written as a fold, it needs 14 ns and 15 ns. mdfsck uses the loop for int indexes and the
  fold for indexes on computed columns. So an int index is now cheaper. An index on a computed column costs 15 ns as
  before; this is now 1.2 times the cost of an int index, and was 1.0 to 1.1 times.
"""


def write():
    """Writes page and chart."""
    all_series = series()
    CHART.write_text(chart(all_series), encoding="utf-8")
    PAGE.write_text(page(all_series), encoding="utf-8")


if __name__ == "__main__":
    write()
