"""Archives whose bytes depend on nothing but what is in them: sorted names, one time, no owner."""

import gzip
import io
import tarfile
import time
import zipfile
from dataclasses import dataclass

from project import epoch


@dataclass(frozen=True)
class Entry:
    """A file in an archive; without content a folder."""

    name: str
    content: bytes | None
    mode: int = 0o644


def program(name, content):
    return Entry(name, content, 0o755)


def folders(entries):
    """The folders that the entries are in, which the archive does not name itself."""
    named = {entry.name.rstrip("/") for entry in entries}
    above = {"/".join(entry.name.split("/")[:depth]) for entry in entries for depth in range(1, entry.name.count("/") + 1)}
    return [Entry(name, None, 0o755) for name in above - named if name not in ("", ".")]


def in_order(entries):
    return sorted([*entries, *folders(entries)], key=lambda entry: entry.name)


def tar(entries):
    """A tar archive that is not compressed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in in_order(entries):
            info = tarfile.TarInfo(entry.name)
            info.mode, info.mtime = entry.mode, epoch()
            if entry.content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(entry.content)
                archive.addfile(info, io.BytesIO(entry.content))
    return packed.getvalue()


def gzipped(content):
    return gzip.compress(content, 9, mtime=0)


def tar_gz(entries):
    return gzipped(tar(entries))


def zipped(entries, with_folders=True):
    """A zip archive. Its times have no zone and start in 1980."""
    packed = io.BytesIO()
    stamp = time.gmtime(max(epoch(), 315_532_800))[:6]
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for entry in in_order(entries) if with_folders else entries:
            is_folder = entry.content is None
            info = zipfile.ZipInfo(entry.name + ("/" if is_folder else ""), stamp)
            # Made on Unix, so that modes count.
            info.create_system = 3
            info.external_attr = (0o040000 if is_folder else 0o100000 | 0) << 16 | entry.mode << 16 | (0x10 if is_folder else 0)
            info.compress_type = zipfile.ZIP_STORED if is_folder else zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.content or b"")
    return packed.getvalue()
