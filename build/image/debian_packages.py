"""Installed Debian packages of an image, from dpkg's database and os-release in its layers.

The content is untrusted: what is not a valid entry is left out. Called by `build.image.distributions`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_DATABASE_BYTES = 8 << 20
"""Bytes of one file; a full Debian with 1,500 packages has 2 MB."""
_DATABASE = "var/lib/dpkg/status"
_DATABASE_FOLDER = "var/lib/dpkg/status.d/"
"""A file for each package, as in distroless images."""
_OS_RELEASE = ("usr/lib/os-release", "etc/os-release")
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]{1,127}")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]{0,127}")
_ARCHITECTURE = re.compile(r"[a-z0-9-]{1,32}")
_OS_FIELD = re.compile(r"^(ID|VERSION_ID)=[\"']?([a-z0-9][a-z0-9._-]{0,31})[\"']?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class DebianPackage:
    """An installed package; `path` is that of the database, `system` like `debian-12`, empty if unknown."""

    name: str
    version: str
    architecture: str
    path: str
    system: str


def is_database(path: str) -> bool:
    """Return whether a file of that path says which packages are installed, or of which system."""
    in_folder = path.startswith(_DATABASE_FOLDER) and not path.endswith(".md5sums")
    return path == _DATABASE or path in _OS_RELEASE or in_folder


def entries(path: str, text: str) -> tuple[str, ...]:
    """Return `name version architecture` of the packages of a database; the system, for os-release."""
    if path in _OS_RELEASE:
        values = dict(_OS_FIELD.findall(text))
        return ("-".join(values[key] for key in ("ID", "VERSION_ID") if key in values),)
    return tuple(dict.fromkeys(_installed(text)))


def packages(databases: Mapping[str, tuple[str, ...]]) -> list[DebianPackage]:
    """Return the packages of an image from the entries of its databases by path."""
    system = next((databases[path][0] for path in _OS_RELEASE if databases.get(path)), "")
    found = []
    for path in sorted(databases.keys() - set(_OS_RELEASE)):
        for entry in databases[path]:
            name, version, architecture = entry.split(" ")
            found.append(DebianPackage(name, version, architecture, path, system))
    return found


def _installed(text: str) -> Iterator[str]:
    for paragraph in text.replace("\r\n", "\n").split("\n\n"):
        lines = (line.partition(": ") for line in paragraph.split("\n"))
        fields = {key: value.strip() for key, _, value in lines}
        name, version = fields.get("Package", ""), fields.get("Version", "")
        architecture = fields.get("Architecture", "")
        # Configuration of removed packages stays; databases of one package have no status.
        is_present = fields.get("Status", "install ok installed").endswith(" installed")
        is_valid = _NAME.fullmatch(name) and _VERSION.fullmatch(version)
        if is_present and is_valid and _ARCHITECTURE.fullmatch(architecture):
            yield f"{name} {version} {architecture}"
