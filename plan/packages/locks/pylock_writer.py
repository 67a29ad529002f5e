"""Writer of a pylock.toml (PEP 751) with the URLs of a lock's files. Called by plan.packages.locks.lock.

An index drops versions, but their files stay where the lock says, so uv can install them from there.
"""

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from packaging.version import Version

from .graph import LockedFile, LockedPackage, SelectedPackage

# What JSON and TOML quote alike, without a quotation mark and a backslash.
_URL = re.compile(r"https?://[!#-\[\]-~]+")


def pylock_text(selected: Iterable[SelectedPackage]) -> str:
    """Return a pylock.toml with these packages, or nothing if the lock lacks the URL of a file."""
    packages = [_package(entry) for entry in selected]
    if not packages or not all(packages):
        return ""
    return 'lock-version = "1.0"\ncreated-by = "crewyard"\n' + "".join(packages)


def _package(entry: SelectedPackage) -> str:
    package = entry.package
    # The fragment of a URL is a subdirectory.
    urls = [file.url for file in package.files if "#" not in package.url]
    if not urls or not all(map(_URL.fullmatch, urls)):
        return ""
    lines = ["", "[[packages]]", f"name = {json.dumps(package.name)}"]
    if package.version:
        lines.append(f"version = {json.dumps(str(Version(package.version)))}")
    if entry.marker:
        lines.append(f"marker = {json.dumps(entry.marker)}")
    return "\n".join([*lines, *_files(package)]) + "\n"


def _files(package: LockedPackage) -> Iterator[str]:
    """Yield the TOML of the files; one from a URL of its own is an archive, whose name may say nothing."""
    if package.url:
        yield f"archive = {_table(package.files[0])}"
        return
    wheels = [_table(file) for file in package.files if _is_wheel(file)]
    sources = [_table(file) for file in package.files if not _is_wheel(file)]
    if sources:
        yield f"sdist = {sources[0]}"
    if wheels:
        yield f"wheels = [{', '.join(wheels)}]"


def _table(file: LockedFile) -> str:
    algorithm, _, value = file.hash.partition(":")
    return f"{{ url = {json.dumps(file.url)}, hashes = {{ {algorithm} = {json.dumps(value)} }} }}"


def _is_wheel(file: LockedFile) -> bool:
    return urlsplit(file.url).path.endswith(".whl")
