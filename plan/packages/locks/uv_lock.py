"""Reader of uv.lock. Called by plan.packages.locks.lock."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from .graph import LockedEdge, LockedFile, LockedPackage, LockGraph, LockMismatch

_PUBLIC_INDEX = re.compile(r"https://pypi\.(python\.)?org/simple/?")


def read_uv_lock(values: Mapping[str, Any]) -> LockGraph:
    """Return the packages of a uv.lock. Raises KeyError, TypeError, ValueError where it is damaged."""
    return LockGraph(_package(entry) for entry in values.get("package", ()))


def uv_roots(
    lock: LockGraph, member: str, extras: Iterable[str], groups: Iterable[str]
) -> Sequence[LockedEdge]:
    """Return the dependencies of the project in the directory `member`, relative to the lock.

    Raises LockMismatch where the lock does not have that project, or one of its extras and groups.
    """
    root = next((package for package in lock.packages() if package.directory == member), None)
    if root is None:
        raise LockMismatch(f"it has no project in {member}")
    edges = list(root.edges)
    for kind, names in (("extra", extras), ("group", groups)):
        for name in names:
            normalized = str(canonicalize_name(name))
            key = normalized if kind == "extra" else f"group:{normalized}"
            if key not in root.extras:
                raise LockMismatch(f"it has no {kind} {name}")
            edges += root.extras[key]
    return edges


def is_public_index(url: str) -> bool:
    """Return whether `url` is PyPI, for which the installation may have another address."""
    return _PUBLIC_INDEX.fullmatch(url) is not None


def git_reference(url: str, commit: str, subdirectory: str = "") -> str:
    """Return the URL of a commit for pip: of GitHub an archive, because base images have no git."""
    repository = url.partition("?")[0].partition("#")[0].removesuffix("/").removeprefix("git+")
    fragment = f"#subdirectory={subdirectory}" if subdirectory else ""
    if repository.startswith("https://github.com/"):
        return f"{repository.removesuffix('.git')}/archive/{commit}.tar.gz{fragment}"
    return f"git+{repository}@{commit}{fragment}"


def locked_files(entries: Iterable[Mapping[str, Any]]) -> tuple[LockedFile, ...]:
    """Return the files of a package that have a hash, from tables with `hash` and, perhaps, `url`."""
    return tuple(
        LockedFile(str(entry["hash"]), str(entry.get("url", ""))) for entry in entries if entry.get("hash")
    )


def _package(entry: Mapping[str, Any]) -> LockedPackage:
    source = entry["source"]
    extras = {
        str(canonicalize_name(name)): _edges(edges)
        for name, edges in entry.get("optional-dependencies", {}).items()
    }
    groups = {
        f"group:{canonicalize_name(name)}": _edges(edges)
        for name, edges in entry.get("dev-dependencies", {}).items()
    }
    files = [*entry.get("wheels", ()), *([entry["sdist"]] if "sdist" in entry else ())]
    directory = next(
        (str(source[kind]) for kind in ("editable", "directory", "virtual", "path") if kind in source), None
    )
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=str(entry.get("version", "")),
        files=locked_files(files),
        edges=_edges(entry.get("dependencies", ())),
        extras=extras | groups,
        markers=tuple(Marker(text) for text in entry.get("resolution-markers", ())),
        index=str(source.get("registry", "")),
        url=_url(source),
        directory=None if directory is None else posixpath.normpath(directory),
        installable="virtual" not in source,
    )


def _url(source: Mapping[str, Any]) -> str:
    if "git" in source:
        url, _, commit = str(source["git"]).partition("#")
        query = dict(pair.partition("=")[::2] for pair in url.partition("?")[2].split("&"))
        return git_reference(url, commit, str(source.get("subdirectory") or query.get("subdirectory", "")))
    if "url" not in source:
        return ""
    subdirectory = source.get("subdirectory")
    return f"{source['url']}#subdirectory={subdirectory}" if subdirectory else str(source["url"])


def _edges(entries: Iterable[Mapping[str, Any]]) -> tuple[LockedEdge, ...]:
    return tuple(
        LockedEdge(
            canonicalize_name(entry["name"]),
            tuple(canonicalize_name(extra) for extra in entry.get("extra", ())),
            Marker(entry["marker"]) if "marker" in entry else None,
            str(entry.get("version", "")),
        )
        for entry in entries
    )
