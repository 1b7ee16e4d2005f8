"""A container image in OCI's archive format, made without an engine: the executable and a folder for temporary files."""

import hashlib
import json
import time

from archives import Entry, gzipped, program, tar
from notices import notices
from project import LICENCE, NAME, ROOT, SUMMARY, commit, epoch, version
from targets import executable

OCI = "application/vnd.oci.image"


def encoded(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def described(kind, content, **more):
    return {"mediaType": f"{OCI}.{kind}", "digest": digest(content), "size": len(content), **more}


def root(target):
    """The files of the image."""
    documents = f"usr/share/doc/{NAME}"
    return [
        # A backup from a pipe is kept here.
        Entry("tmp", None, 0o1777),
        program(f"usr/bin/{NAME}", executable(target).read_bytes()),
        Entry(f"{documents}/LICENSE", (ROOT / "LICENSE").read_bytes()),
        Entry(f"{documents}/NOTICE", (ROOT / "NOTICE").read_bytes()),
        Entry(f"{documents}/THIRD-PARTY-NOTICES.txt", notices(target)),
    ]


def build(target):
    """Name and bytes of the image."""
    layer = tar(root(target))
    packed = gzipped(layer)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
    labels = {
        "org.opencontainers.image.title": NAME,
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.licenses": LICENCE,
        "org.opencontainers.image.revision": commit(),
        "org.opencontainers.image.version": version(),
    }
    config = encoded({
        "architecture": target.container,
        "os": "linux",
        "created": created,
        "config": {"Entrypoint": [f"/usr/bin/{NAME}"], "Cmd": ["--help"], "WorkingDir": "/", "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": created, "created_by": "packaging/build container"}],
    })
    manifest = encoded({
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", packed)],
        "annotations": labels,
    })
    platform = {"architecture": target.container, "os": "linux"}
    names = {"org.opencontainers.image.ref.name": version(), "io.containerd.image.name": f"{NAME}:{version()}"}
    listed = described("manifest.v1+json", manifest, platform=platform, annotations=names)
    index = encoded({"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [listed]})
    blobs = [Entry(f"blobs/sha256/{digest(blob).split(':')[1]}", blob) for blob in (packed, config, manifest)]
    layout = Entry("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}))
    return f"{NAME}-{version()}-{target.name}.oci.tar", tar([*blobs, Entry("index.json", index), layout])
