"""Packages installed in an image, read from its layers in the dev cluster's registry. Called by dev.sbom.

Python packages are those with a `METADATA` file, Debian packages those in dpkg's status file.
"""

import json
import tarfile
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.parser import Parser
from typing import IO, Any

from dev.errors import DevClusterError
from dev.registry.client import open_url
from dev.registry.server import URL

_ACCEPT = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
_DPKG = "var/lib/dpkg/status"
_READ_TIMEOUT_SECONDS = 120
_WHITEOUT = ".wh."


@dataclass(frozen=True)
class InstalledPackage:
    """One installed package; `license` as declared, or empty."""

    name: str
    version: str
    license: str = ""
    architecture: str = ""


@dataclass
class ImageContents:
    """The configuration of an image, its regular files with their modes, and its packages."""

    digest: str
    configuration: dict[str, Any]
    files: dict[str, int] = field(default_factory=dict)
    python: list[InstalledPackage] = field(default_factory=list)
    debian: list[InstalledPackage] = field(default_factory=list)


def python_package(metadata: str) -> InstalledPackage:
    """Return the package of a `METADATA` file."""
    headers = Parser().parsestr(metadata, headersonly=True)
    classified = [
        line.rpartition(" :: ")[2]
        for line in headers.get_all("Classifier", [])
        if line.startswith("License ::")
    ]
    license_text = (
        headers.get("License-Expression") or " and ".join(classified) or headers.get("License") or ""
    )
    return InstalledPackage(
        str(headers["Name"]),
        str(headers["Version"]),
        str(license_text).strip().splitlines()[0][:100] if license_text else "",
    )


def debian_packages(status: str) -> list[InstalledPackage]:
    """Return the installed packages in dpkg's status, sorted."""
    packages = []
    for block in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            packages.append(
                InstalledPackage(fields["Package"], fields["Version"], "", fields.get("Architecture", ""))
            )
    return sorted(packages, key=lambda package: package.name)


def read(repository: str, digest: str, address: str = URL) -> ImageContents:
    """Read all layers, later ones override. Raises DevClusterError if the registry lacks the image."""
    base_url = f"{address}/v2/{repository}"
    try:
        with _get(f"{base_url}/manifests/{digest}") as response:
            manifest = json.load(response)
        with _get(f"{base_url}/blobs/{manifest['config']['digest']}") as response:
            contents = ImageContents(digest, json.load(response)["config"])
        texts: dict[str, str] = {}
        for layer in manifest["layers"]:
            with _get(f"{base_url}/blobs/{layer['digest']}") as response:
                for name, mode, text in _members(response):
                    _apply_member(contents, texts, name, mode, text)
    except (OSError, urllib.error.URLError, tarfile.TarError) as error:
        raise DevClusterError(
            f"{repository}@{digest} cannot be read: {error}. Run `make up` to build it."
        ) from error
    contents.python = sorted(
        (python_package(text) for name, text in texts.items() if name != _DPKG),
        key=lambda package: package.name.lower(),
    )
    contents.debian = debian_packages(texts.get(_DPKG, ""))
    return contents


def _apply_member(
    contents: ImageContents, texts: dict[str, str], name: str, mode: int | None, text: str | None
) -> None:
    directory, _, base_name = name.rpartition("/")
    if base_name.startswith(_WHITEOUT):
        removed = f"{directory}/{base_name.removeprefix(_WHITEOUT)}".lstrip("/")
        for file in [path for path in contents.files if path == removed or path.startswith(f"{removed}/")]:
            del contents.files[file]
            texts.pop(file, None)
    elif mode is not None:
        contents.files[name] = mode
        if text is not None:
            texts[name] = text


def _members(response: IO[bytes]) -> Iterator[tuple[str, int | None, str | None]]:
    with tarfile.open(fileobj=response, mode="r|*") as tar:
        for member in tar:
            name = member.name.removeprefix("./").lstrip("/")
            has_packages = name == _DPKG or name.endswith(".dist-info/METADATA")
            file = tar.extractfile(member) if member.isfile() and has_packages else None
            text = file.read().decode("utf-8", "replace") if file else None
            yield name, member.mode if member.isfile() else None, text


def _get(url: str) -> IO[bytes]:
    response: IO[bytes] = open_url(url, f"{_ACCEPT}, */*", _READ_TIMEOUT_SECONDS)
    return response
