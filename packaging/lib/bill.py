"""The bill of materials of an executable: CycloneDX 1.5 as JSON, from cargo's own metadata."""

import json
import re
import time
import uuid
from functools import cache

from project import (LICENCE, NAME, PROGRAM, ROOT, cargo, commit, epoch, library, linked, metadata, standard_library,
                     version)
from targets import PROFILE

# The licence of the parts of the standard library that name none.
LIBRARY_LICENCE = "MIT OR Apache-2.0"
# The namespace of the names below it.
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, NAME)


@cache
def checksums():
    """The sums of packages from the registry, by name and version."""
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"'
    locks = "".join(path.read_text() for path in [ROOT / "Cargo.lock", library() / "library/Cargo.lock"])
    return {(name, number): sum for name, number, sum in re.findall(pattern, locks)}


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package):
    described = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "scope": "required",
        "purl": purl(package),
        # The old way to write a choice.
        "licenses": [{"expression": (package["license"] or LIBRARY_LICENCE).replace("/", " OR ")}],
    }
    if package["description"]:
        described["description"] = " ".join(package["description"].split())
    checksum = checksums().get((package["name"], package["version"]))
    if checksum:
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        described["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return described


def dependencies(manifest, target):
    """Which package uses which, of those that a package links."""
    names = {package["id"]: purl(package) for package in linked(manifest, target)}
    for node in metadata(manifest)["resolve"]["nodes"]:
        if node["id"] in names:
            used = {names[edge["pkg"]] for edge in node["deps"]
                    if edge["pkg"] in names and any(kind["kind"] is None for kind in edge["dep_kinds"])}
            yield names[node["id"]], used


def build(target):
    """Name and bytes of the bill."""
    packages, used = {}, {}
    for manifest in (PROGRAM, standard_library()):
        packages.update((purl(package), package) for package in linked(manifest, target.triple))
        for ref, uses in dependencies(manifest, target.triple):
            used.setdefault(ref, set()).update(uses)
    ours = next(package for package in packages.values() if package["name"] == NAME)
    # Every program uses the standard library.
    used[purl(ours)].update(ref for ref, package in packages.items() if package["name"] == "std")
    compiler = cargo("--version").decode().split()
    serial = uuid.uuid5(NAMESPACE, f"{version()} {commit()} {target.triple}")
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch())),
            "tools": {"components": [{"type": "application", "name": compiler[0], "version": compiler[1]}]},
            "component": {
                "type": "application",
                "bom-ref": purl(ours),
                "name": NAME,
                "version": version(),
                "purl": purl(ours),
                "licenses": [{"expression": LICENCE}],
                "properties": [
                    {"name": "mdfsck:commit", "value": commit()},
                    {"name": "mdfsck:profile", "value": PROFILE},
                    {"name": "mdfsck:target", "value": target.triple},
                ],
            },
        },
        "components": [component(packages[ref]) for ref in sorted(packages) if packages[ref] is not ours],
        "dependencies": [{"ref": ref, "dependsOn": sorted(used[ref])} for ref in sorted(used)],
    }
    return f"{NAME}-{version()}-{target.name}.cdx.json", (json.dumps(bill, indent=2) + "\n").encode()
