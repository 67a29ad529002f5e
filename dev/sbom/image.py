"""What is installed in an image, read from its layers in the ground's registry. Called by dev.sbom.

Python packages are those with a `METADATA`, Debian packages those of dpkg's status.
"""

import json
import tarfile
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.parser import Parser
from typing import IO, Any

from dev.errors import GroundError
from dev.registry.client import opened
from dev.registry.server import URL

_ACCEPT = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
_DPKG = "var/lib/dpkg/status"
_SECONDS = 120
_WHITEOUT = ".wh."


@dataclass(frozen=True)
class Package:
    """One installed package; `license` as it says itself, or empty."""

    name: str
    version: str
    license: str = ""
    architecture: str = ""


@dataclass
class Contents:
    """The configuration of an image, its regular files with their modes, and the packages in it."""

    digest: str
    configuration: dict[str, Any]
    files: dict[str, int] = field(default_factory=dict)
    python: list[Package] = field(default_factory=list)
    debian: list[Package] = field(default_factory=list)


def python_package(metadata: str) -> Package:
    """A package by its `METADATA`."""
    found = Parser().parsestr(metadata, headersonly=True)
    classified = [
        line.rpartition(" :: ")[2]
        for line in found.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    said = found.get("License-Expression") or " and ".join(classified) or found.get("License") or ""
    return Package(
        str(found["Name"]), str(found["Version"]), str(said).strip().splitlines()[0][:100] if said else ""
    )


def debian_packages(status: str) -> list[Package]:
    """The installed packages of dpkg's status, sorted."""
    found = []
    for block in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            found.append(Package(fields["Package"], fields["Version"], "", fields.get("Architecture", "")))
    return sorted(found, key=lambda one: one.name)


def read(repository: str, digest: str, address: str = URL) -> Contents:
    """Reads all layers, later ones winning. Raises GroundError where the registry does not have the image."""
    place = f"{address}/v2/{repository}"
    try:
        with _get(f"{place}/manifests/{digest}") as answer:
            manifest = json.load(answer)
        with _get(f"{place}/blobs/{manifest['config']['digest']}") as answer:
            contents = Contents(digest, json.load(answer)["config"])
        kept: dict[str, str] = {}
        for layer in manifest["layers"]:
            with _get(f"{place}/blobs/{layer['digest']}") as answer:
                for name, mode, text in _members(answer):
                    _apply(contents, kept, name, mode, text)
    except (OSError, urllib.error.URLError, tarfile.TarError) as error:
        raise GroundError(f"{repository}@{digest} cannot be read: {error}. `make up` builds it.") from error
    contents.python = sorted(
        (python_package(text) for name, text in kept.items() if name != _DPKG),
        key=lambda one: one.name.lower(),
    )
    contents.debian = debian_packages(kept.get(_DPKG, ""))
    return contents


def _apply(contents: Contents, kept: dict[str, str], name: str, mode: int | None, text: str | None) -> None:
    directory, _, last = name.rpartition("/")
    if last.startswith(_WHITEOUT):
        gone = f"{directory}/{last.removeprefix(_WHITEOUT)}".lstrip("/")
        for known in [one for one in contents.files if one == gone or one.startswith(f"{gone}/")]:
            del contents.files[known]
            kept.pop(known, None)
    elif mode is not None:
        contents.files[name] = mode
        if text is not None:
            kept[name] = text


def _members(answer: IO[bytes]) -> Iterator[tuple[str, int | None, str | None]]:
    with tarfile.open(fileobj=answer, mode="r|*") as tar:
        for member in tar:
            name = member.name.removeprefix("./").lstrip("/")
            wanted = name == _DPKG or name.endswith(".dist-info/METADATA")
            file = tar.extractfile(member) if member.isfile() and wanted else None
            text = file.read().decode("utf-8", "replace") if file else None
            yield name, member.mode if member.isfile() else None, text


def _get(url: str) -> IO[bytes]:
    found: IO[bytes] = opened(url, f"{_ACCEPT}, */*", _SECONDS)
    return found
