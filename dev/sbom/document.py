"""CycloneDX document of packages and files. Pure: the same content gives the same bytes."""

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from dev.sbom.image import InstalledPackage

SPECIFICATION = "1.6"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://crewyard.dev/sbom")
_SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")


def normal(name: str) -> str:
    """Return the normalized name of a Python package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(requirements: str) -> dict[str, tuple[str, list[str]]]:
    """Return name → version and sha256 of its archives, from a requirements file with hashes."""
    packages: dict[str, tuple[str, list[str]]] = {}
    for line in requirements.replace("\\\n", " ").splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;]+)", line)
        if match:
            packages[normal(match[1])] = (match[2], re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
    return packages


def python(package: InstalledPackage, hashes: Iterable[str] = ()) -> dict[str, Any]:
    """Return a Python package; `hashes` are those of the archives, one of which was installed."""
    name = normal(package.name)
    return _component("library", name, package, f"pkg:pypi/{quote(name)}@{quote(package.version)}", hashes)


def debian(package: InstalledPackage, suite: str) -> dict[str, Any]:
    """Return a Debian package."""
    qualifiers = f"?arch={package.architecture}&distro={suite}"
    purl = f"pkg:deb/debian/{quote(package.name)}@{quote(package.version)}{qualifiers}"
    return _component("library", package.name, package, purl, ())


def file(name: str, sha256: str) -> dict[str, Any]:
    """Return a file of this repository."""
    return {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": _hashes([sha256])}


def document(name: str, version: str, kind: str, components: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document; its serial number is derived from the content."""
    ordered = sorted(components, key=lambda component: str(component["bom-ref"]))
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, f'{name} {version} {ordered}')}",
        "version": 1,
        "metadata": {"component": {"type": kind, "bom-ref": "root", "name": name, "version": version}},
        "components": ordered,
    }


def _component(
    kind: str, name: str, package: InstalledPackage, purl: str, hashes: Iterable[str]
) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": package.version,
        "purl": purl,
    }
    if hash_list := _hashes(hashes):
        component["hashes"] = hash_list
    if package.license:
        # An SPDX expression if it has the form of one, else a name: declared licences vary.
        license_name = {"license": {"name": package.license}}
        is_expression = _SPDX.fullmatch(package.license) and " " in package.license
        component["licenses"] = [{"expression": package.license} if is_expression else license_name]
    return component


def _hashes(sha256: Iterable[str]) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest} for digest in sorted(set(sha256))]
