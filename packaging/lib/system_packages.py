"""Packages for Debian and Red Hat systems, by their own tools. The executable needs nothing of the system."""

import hashlib
import shutil
import time

from archives import gzipped
from documents import in_prefix
from notices import notices
from project import (DESCRIPTION, LICENCE, MAINTAINER, NAME, ROOT, SUMMARY, WORK, environment, epoch, run, version)
from targets import executable

RELEASE = "1"


def contents(target):
    """What is installed: path from the root, bytes, mode."""
    documents = f"usr/share/doc/{NAME}"
    yield f"usr/bin/{NAME}", executable(target).read_bytes(), 0o755
    for entry in in_prefix():
        yield f"usr/{entry.name}", entry.content, entry.mode
    for name in ("README.md", "NOTICE"):
        yield f"{documents}/{name}", (ROOT / name).read_bytes(), 0o644
    yield f"{documents}/THIRD-PARTY-NOTICES.txt", notices(target), 0o644


def lay_out(folder, files):
    """Writes files below an empty folder, with the time of the commit."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content, mode in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    folder.chmod(0o755)


def deb(target):
    """Name and bytes of the package for Debian and Ubuntu."""
    files = list(contents(target))
    stamp = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch()))
    revised = f"{version()}-{RELEASE}"
    changelog = f"{NAME} ({revised}) unstable; urgency=medium\n\n  * See README.md.\n\n -- {MAINTAINER}  {stamp}\n"
    copyright = f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: {NAME}

Files: *
Copyright: the mdfsck authors
License: {LICENCE}
 The text is in /usr/share/common-licenses/Apache-2.0.
 .
 What the program contains of others is in THIRD-PARTY-NOTICES.txt.
"""
    files.append((f"usr/share/doc/{NAME}/changelog.Debian.gz", gzipped(changelog.encode()), 0o644))
    files.append((f"usr/share/doc/{NAME}/copyright", copyright.encode(), 0o644))
    size = sum(-(-len(content) // 1024) for _, content, _ in files)
    description = "".join(f" {line}\n" for line in DESCRIPTION.splitlines())
    control = f"""Package: {NAME}
Version: {revised}
Architecture: {target.deb}
Maintainer: {MAINTAINER}
Installed-Size: {size}
Section: database
Priority: optional
Description: {SUMMARY}
{description}"""
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {name}\n" for name, content, _ in sorted(files))
    folder = WORK / "deb" / target.name
    lay_out(folder, [*files, ("DEBIAN/control", control.encode(), 0o644), ("DEBIAN/md5sums", sums.encode(), 0o644)])
    name = f"{NAME}_{revised}_{target.deb}.deb"
    # Its times are those of the commit: SOURCE_DATE_EPOCH.
    run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", folder, WORK / name], env=environment())
    return name, (WORK / name).read_bytes()


SPEC = """\
Name: {name}
Version: {version}
Release: {release}
Summary: {summary}
License: {licence}
AutoReqProv: no

%description
{description}

%install
cp -a {root} %{{buildroot}}

%files
%defattr(-,root,root,-)
{files}
"""


def rpm(target):
    """Name and bytes of the package for Red Hat, SUSE and their kin."""
    files = list(contents(target))
    files.append((f"usr/share/licenses/{NAME}/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644))
    folder = WORK / "rpm" / target.name
    lay_out(folder / "root", files)
    kinds = {"usr/share/doc/": "%doc ", "usr/share/licenses/": "%license "}
    lines = []
    for name, _, _ in sorted(files):
        kind = next((kind for start, kind in kinds.items() if name.startswith(start)), "")
        lines.append(f'{kind}"/{name}"')
    spec = SPEC.format(name=NAME, version=version(), release=RELEASE, summary=SUMMARY, licence=LICENCE,
                       description=DESCRIPTION, root=f"{folder}/root/.", files="\n".join(lines))
    (folder / "mdfsck.spec").write_text(spec)
    defined = {
        "_topdir": f"{folder}/build",
        "_rpmdir": str(folder),
        "_rpmfilename": "package.rpm",
        "_buildhost": "reproducible",
        "use_source_date_epoch_as_buildtime": "1",
        "clamp_mtime_to_source_date_epoch": "1",
        # What is packed is packed as it is, with a compression that old systems know.
        "__os_install_post": "%{nil}",
        "_build_id_links": "none",
        "_binary_payload": "w9.xzdio",
    }
    options = [part for name, value in defined.items() for part in ("--define", f"{name} {value}")]
    run(["rpmbuild", "-bb", "--quiet", "--target", f"{target.rpm}-linux", *options, folder / "mdfsck.spec"],
        env=environment())
    return f"{NAME}-{version()}-{RELEASE}.{target.rpm}.rpm", (folder / "package.rpm").read_bytes()
