"""A Python wheel that installs the command itself: PEP 427, without a line of Python in it."""

import base64
import hashlib

from archives import Entry, program, zipped
from documents import in_prefix
from notices import notices
from project import DESCRIPTION, LICENCE, NAME, ROOT, SUMMARY, version
from targets import executable


def metadata():
    return f"""Metadata-Version: 2.4
Name: {NAME}
Version: {version()}
Summary: {SUMMARY}
License-Expression: {LICENCE}
License-File: LICENSE
License-File: NOTICE
License-File: THIRD-PARTY-NOTICES.txt
Keywords: sql-server,dbcc,checkdb,corruption,backup
Classifier: Environment :: Console
Classifier: Intended Audience :: System Administrators
Classifier: Topic :: Database
Requires-Python: >=3.7
Description-Content-Type: text/markdown

{DESCRIPTION}
"""


def tags(target):
    return [f"py3-none-{platform}" for platform in target.wheel.split(".")]


def record(entries, path):
    """The sum and the size of each file, and of itself neither."""
    lines = []
    for entry in entries:
        digest = base64.urlsafe_b64encode(hashlib.sha256(entry.content).digest()).rstrip(b"=").decode()
        lines.append(f"{entry.name},sha256={digest},{len(entry.content)}")
    return Entry(path, "\n".join([*lines, f"{path},,", ""]).encode())


def build(target):
    """Name and bytes of the wheel."""
    base = f"{NAME}-{version()}"
    about = "".join([f"Wheel-Version: 1.0\nGenerator: packaging\nRoot-Is-Purelib: false\n",
                     *(f"Tag: {tag}\n" for tag in tags(target))])
    entries = [program(f"{base}.data/scripts/{target.file_name}", executable(target).read_bytes())]
    if not target.is_windows:
        entries += [Entry(f"{base}.data/data/{entry.name}", entry.content) for entry in in_prefix()]
    entries += [
        Entry(f"{base}.dist-info/METADATA", metadata().encode()),
        Entry(f"{base}.dist-info/WHEEL", about.encode()),
        Entry(f"{base}.dist-info/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()),
        Entry(f"{base}.dist-info/licenses/NOTICE", (ROOT / "NOTICE").read_bytes()),
        Entry(f"{base}.dist-info/licenses/THIRD-PARTY-NOTICES.txt", notices(target)),
    ]
    entries.append(record(entries, f"{base}.dist-info/RECORD"))
    return f"{base}-py3-none-{target.wheel}.whl", zipped(entries, with_folders=False)
