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

# Of the chart, in pixels.
WIDTH, LINE, LEFT, RIGHT, TOP = 940, 26, 420, 130, 56
# Beyond this share of what was asked a bar would not tell more.
MOST = 2.0
OLD, NEW, ASKED, INK, PALE = "#b9c4d0", "#2f6f9f", "#b3472f", "#24292f", "#57606a"


def read():
    """All results, oldest first."""
    if not HISTORY.exists():
        return []
    lines = HISTORY.read_text(encoding="utf-8").splitlines()
    return [Result(*line.split("\t")) for line in lines[1:] if line]


def record(date, machine, rows):
    """Adds the results of a run; of the same day and machine, the last one of each line stays."""
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
    """How much of what was asked is reached: 1 is all of it."""
    measured, asked = float(result.measured), asked_number(result)
    return asked / measured if is_at_most(result) else measured / asked


def series():
    """Results by id, oldest first, in the order of the newest run; those not measured for long come last."""
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
        f'<text x="16" y="22" font-size="14" font-weight="600" fill="{INK}">Speed: what is reached of what is asked</text>',
        f'<rect x="{LEFT}" y="30" width="10" height="8" fill="{OLD}"/>'
        f'<text x="{LEFT + 15}" y="38" fill="{PALE}">first measured</text>',
        f'<rect x="{LEFT + 120}" y="30" width="10" height="8" fill="{NEW}"/>'
        f'<text x="{LEFT + 135}" y="38" fill="{PALE}">newest</text>',
        f'<line x1="{asked_at}" y1="{TOP - 6}" x2="{asked_at}" y2="{height - 16}" stroke="{ASKED}" stroke-dasharray="3 3"/>',
        f'<text x="{asked_at}" y="{height - 4}" text-anchor="middle" fill="{ASKED}">asked</text>',
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
    out += ["| what | asked | measured | reached | beside |", "|---|---|---|---|---|"]
    for results in all_series:
        result = results[-1]
        bound = "at most" if is_at_most(result) else "at least"
        reached = "yes" if share(result) >= 1 else f"**{share(result) * 100:.0f} %**"
        when = "" if result.date == newest else f" ({result.date})"
        out.append(
            f"| {result.what} | {bound} {asked_number(result):g} {result.unit} | {result.measured} {result.unit}{when} "
            f"| {reached} | {result.beside} |"
        )
    out += ["\n## History\n", "| what | date | measured | machine | beside |", "|---|---|---|---|---|"]
    for results in all_series:
        for result in results:
            out.append(f"| {result.what} | {result.date} | {result.measured} {result.unit} | {result.machine} | {result.beside} |")
    out.append(MEASURED_AND_LEFT)
    return "\n".join(out) + "\n"


PREFACE = """# Speed

What is asked of mdfsck, what was measured, and beside what. Absolute figures move with the machine and its neighbours by a factor of
two within the hour; ratios of runs that took turns hardly do. Each figure is the median of several runs of one session, beside a program
that does the least that could be done ([benches/limits](../benches/limits)), or one that does the same job for another database.
`benches/yardsticks.py --record` measures again and adds to docs/speed.tsv, from which this page and its chart are
written; [benches/README.md](../benches/README.md) says how each figure is made.

![Each line as a share of what is asked: first and newest result](pictures/speed.svg)
"""

MEASURED_AND_LEFT = """
## Measured and left alone

* **io_uring** (2026-11-26; a file of 1.95 GB that is not in the page cache, medians of 5 runs that took turns; the device gave 0.45 GB/s). It
  would have to win by a tenth to be worth a second way of reading, and it does not: what limits a cold file is the device.

  | how | GB/s (slowest to fastest) | of a core |
  |---|---|---|
  | pread, 1 MB at a time, nothing done with it | 0.34 (0.18-0.45) | 0.22 |
  | io_uring through the page cache, 4 times 1 MB | 0.33 (0.28-0.45) | 0.19 |
  | io_uring past the page cache, 4 times 1 MB | 0.44 (0.43-0.69) | 0.03 |
  | io_uring past the page cache, 16 times 1 MB | 0.46 (0.44-1.08) | 0.04 |
  | `check --physical-only`, 1 thread | 0.29 (0.26-0.32) | 0.20 |
  | `check --physical-only`, 2 threads | 0.36 (0.35-0.44) | 0.25 |
  | `check --physical-only --direct`, 2 threads | 0.42 (0.37-0.47) | 0.19 |

  From the page cache io_uring is as fast as pread (`limits io`). Depth is what helps on such a device: threads give it, and `--direct`
  saves the copy.
* **Threads that read ahead** (2026-11-26; AMD EPYC with 2 cores, a file of 2.5 GB that is not in the page cache, medians of 5 runs that took
  turns while others built). A thread announces the chunk that is four ahead of the one that it reads, and that is as fast as the fastest
  other way that was tried. The device gave up to 1 GB/s; more than a quarter of a core is needed for that.

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
* **Two blocks at once in the decoder**: the records of a compressed backup depend on nothing, so that the work on two of them can
  overlap. It gained nothing (0.9 x): the loop is bound by how much it does, not by what it waits for.
* **Compressed rows by their half-bytes** (2026-11-26): the places of eight short values from one multiplication, and usual records without
  the general reader: 3 % at most for 300 lines. What a compressed row takes is spread evenly: of 125 ns of expansion 38 put numbers
  and decimals, 33 lay out the row, 32 read the record, 17 find the short values (before heads were read once a page).
* **A mask of the columns that checks read**, so that compressed rows are expanded without the others: what was asked for is reached without
  it, and a column that a check forgets to name would be damage that is missed.
* **Records that are alike with one test for each** in place of one for each word that is read, and what was found of them in one number:
  fewer instructions, and none to 3 % slower.
* **What is packaged** (`packaging/build`: a static executable of the profile `dist`, made by another compiler) beside the profile `release`, of which
  all figures here are: by turns a full check has 0.93 of its speed, a physical one 0.86, 40 small backups 0.88, 100,000 tables 0.93.
* **Moved rows without a second start**: the audit of a page that goes on from the first record of another shape is no faster.
* **Codes of 10 or 12 bits by one look-up** in place of 11: 5 to 8 % and 1 % slower. **BMI2** for the shifts: no faster.
* **Other hashes** (2026-11-26, 2 cores of x86-64 with AVX2 and AES-NI; a loop over rows in the nearest cache, each hash as 128 bits
  that are added up, medians of 7, while others built). AES-NI is five times as fast as the product of 128 bits, which is 3.7 ns of a row and index. It was
  left alone: sums must be the same on every machine that takes part in a check, so processors without such instructions would compute
  the rounds by tables, and intrinsics would leave `format::simd`.

  | hash | int and bigint, ns a row | 28 bytes and bigint |
  |---|---|---|
  | product of 128 bits, three a row (the present one) | 4.6 | 6.0 |
  | AES-NI, a round for each 16 bytes and three more | 0.9 | 1.7 |
  | PCLMUL, two products | 1.9 | |
  | AVX2, products of 32 bits in lanes, three rounds | 2.9 | |

  Beside which limit a full check is measured depends on the processor: with VAES the limit program reads 3.15 GB/s of a table with two
  indexes, with the product of 128 bits 2.88, with XXH3 2.83 (2026-11-26, 2 cores of x86-64 with AVX-512, medians of 5), and the fastest counts.
* **The words of rows without a test for each** (2026-11-26, AMD EPYC; a loop over rows in the nearest cache, while others built; an int and a
  bigint, 28 bytes and a bigint): 5.4 and 8.4 ns a row. One test for a row and a slice of it: 6.2 and 8.9. A place that is clamped to the
  page: 5.4 and 8.7. No test at all: 4.8 and 7.2, but that is not to be had in safe Rust.
* **Hashes of rows in lanes** (2026-11-26, 2 cores of x86-64 with AVX-512; a loop over rows in the nearest cache, best of 9; an int and a
  bigint, two bigints and an int). The loop is bound by the number of its instructions: without any product it would be 10 % faster.

  | hash | int and bigint, ns a row | two bigints and an int |
  |---|---|---|
  | product of 128 bits (the present one) | 2.6 | 3.1 |
  | the same in lanes of AVX-512, of AVX2 | 2.7, 2.8 | 3.1, 3.2 |
  | the same, 16 rows at a time in each step | 3.1 | 4.0 |
  | one product at the end in place of two | 2.4 | 3.0 |
  | sums of 64 bits in place of 128 | 2.0 | 2.7 |
  | four products of 32 bits for each two words, in lanes of AVX-512, of AVX2 | 1.6, 2.0 | 2.3, 2.7 |
  | those for one value after the other, as texts and NULLs need | 4.7 | 7.0 |

* **Files mapped into memory** (2026-11-26, the same machine): with the checksum 16 to 22 GB/s from the page cache, where reads give 9 to 11
  (`limits ck`). Half of a physical check is that copy. But a page of a mapped file that cannot be read ends the process, and its bytes
  may change between the checksum and the checks: a read that fails must be a line of the report, and a page is judged as it was read.
* **Reads of 1 MB from the page cache** (2026-11-26; `limits ck`, a pread and the checksum, GB/s): which size is best depends on the cache that
  a core has of its own. Where it is small, 256 KB are read; where it is large, 1 MB if the file is in memory: a check takes 2 to 4 % less.

  | cache of a core | 128 KB | 256 KB | 512 KB | 1 MB | 4 MB |
  |---|---|---|---|---|---|
  | 512 KB (while others built) | 5.3 | 7.6 | 6.0 | 5.9 | |
  | 1 MB | 8.9 | 9.1 | 9.8 | 11.0 | 11.4 |

  From a disk, 256 KB are read in any case. Reads of 1 MB have the system read ahead in a way of its own, which on this virtual machine
  gave 0.5 to 2.0 GB/s at 0.5 to 4.7 s of processor time for 2.5 GB, where announced reads of 256 KB give 1.0 to 1.5 GB/s at 1.0 to 1.5 s
  (2 x 10 runs in random order). So does the question whether the next chunk is in memory, if it is asked for each: it is asked
  again only after 64 chunks that were not, then after 128, up to 4096.
* **One loop for all sums of hashed words** (2026-11-26, 2 cores of x86-64 with AVX-512; `index_rows` by turns, what an index adds, ns a row): as
  a loop an int index 13 and one on a computed column 17, as a fold 14 and 15. Each has the one that is faster for it, so that an int index
  is now cheaper and one on a computed column costs 1.2 of it, where it cost 1.0 to 1.1: 15 ns as before.
"""


def write():
    """Writes page and chart."""
    all_series = series()
    CHART.write_text(chart(all_series), encoding="utf-8")
    PAGE.write_text(page(all_series), encoding="utf-8")


if __name__ == "__main__":
    write()
