"""The licences of everything that is in an executable."""

import re
from functools import cache
from pathlib import Path

from project import NAME, ROOT, TOOLS, Failed, foreign, library, version

FILES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.I)
RULE = "=" * 80
# What the orders of characters come from.
WEIGHTS = ROOT / "crates/format/src/collation/weights/NOTICE"
# The text of the MIT licence, for what names it and has no file with it.
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def decoded(path):
    return path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()


def of_crate(package):
    """The heading of a crate and its licence texts."""
    folder = Path(package["manifest_path"]).parent
    texts = [decoded(path) for path in sorted(folder.iterdir()) if path.is_file() and FILES.match(path.name)]
    expression = package["license"]
    if not expression:
        raise Failed(f"{package['name']} {package['version']}: no licence; its texts must be added by hand")
    if not texts and "MIT" in expression:
        texts = [f"Copyright {', '.join(package['authors']) or 'the authors of ' + package['name']}\n\n{MIT.strip()}"]
    if not texts and "Apache-2.0" not in expression:
        raise Failed(f"{package['name']} {package['version']}: no text of its licence, {expression}")
    return f"{package['name']} {package['version']}\n{expression}", texts


def runtime(target):
    """What the compiler and the linker add."""
    yield "The standard library of Rust\nMIT OR Apache-2.0", [decoded(library() / "COPYRIGHT"), MIT.strip()]
    if target.is_windows:
        mingw = Path("/usr/share/doc/mingw-w64-x86-64-dev/copyright")
        yield "The runtime of mingw-w64\nZPL-2.1, public domain and others", [decoded(mingw)]
        gcc = "The parts of GCC's runtime library in this executable may be used under the GCC Runtime Library Exception."
        yield "libgcc\nGPL-3.0-or-later WITH GCC-exception-3.1", [gcc]
    else:
        zig = next(TOOLS.parent.glob("lib/python3*/site-packages/ziglang/lib"))
        yield "musl\nMIT", [decoded(zig / "libc/musl/COPYRIGHT")]
        yield "LLVM's libunwind and compiler-rt\nApache-2.0 WITH LLVM-exception", [decoded(zig / "libunwind/LICENSE.TXT")]


@cache
def notices(target):
    """The text that every package holds."""
    parts = [of_crate(package) for package in foreign(target.triple)]
    parts += runtime(target)
    parts += [("Weights of characters, from Jackcess", [decoded(WEIGHTS)])]
    blocks, seen = [], {decoded(ROOT / "LICENSE"): "the Apache License 2.0, as in the file LICENSE"}
    for heading, texts in parts:
        name = heading.split("\n")[0]
        lines = [RULE, heading, ""]
        for text in texts:
            # Many have the same text.
            lines += [f"(The same text as that of {seen[text]}.)" if text in seen else text, ""]
            seen.setdefault(text, name)
        if not texts:
            lines += ["The Apache License 2.0, as in the file LICENSE.", ""]
        blocks.append("\n".join(lines))
    start = f"{NAME} {version()} for {target.triple} contains the following software of others.\n"
    return "\n".join([start, *blocks]).encode()
