"""Reader of uv.lock. Called by plan.packages.locks.lock."""

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from .graph import LockedEdge, LockedFile, LockedPackage, LockGraph, LockMismatch

_PUBLIC_INDEX = re.compile(r"https://pypi\.(python\.)?org/simple/?")


# The name that uv gives to an extra or group, of a package, that conflicts with another.
_CONFLICTING = re.compile(r"extra (==|!=) '((?:extra|group)-\d+-[^']*)'")


def read_uv_lock(
    values: Mapping[str, Any], member: str = "", extras: Iterable[str] = (), groups: Iterable[str] = ()
) -> LockGraph:
    """Return the packages of a uv.lock, for these extras and groups of the project in `member`.

    Raises KeyError, TypeError, ValueError where it is damaged.
    """
    entries = values.get("package", ())
    own = next((str(entry["name"]) for entry in entries if _directory(entry["source"]) == member), "")
    chosen = {
        f"{kind}-{len(own)}-{own}-{canonicalize_name(name)}"
        for kind, names in (("extra", extras), ("group", groups))
        for name in names
    }
    return LockGraph(_package(entry, chosen) for entry in entries)


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
    if repository.startswith("https://github.com/"):
        return url_reference(f"{repository.removesuffix('.git')}/archive/{commit}.tar.gz", subdirectory)
    return url_reference(f"git+{repository}@{commit}", subdirectory)


def url_reference(url: str, subdirectory: str) -> str:
    """Return the URL of an archive for pip, with the directory of the project in it."""
    return f"{url}#subdirectory={subdirectory}" if url and subdirectory else url


def text_at(values: Mapping[str, Any], key: str) -> str:
    """Return the text at a key of a lock; empty where there is none."""
    return str(values.get(key, ""))


def locked_files(entries: Iterable[Mapping[str, Any]]) -> tuple[LockedFile, ...]:
    """Return the files of a package that have a hash, from tables with `hash` and, perhaps, `url`."""
    return tuple(
        LockedFile(str(entry["hash"]), text_at(entry, "url")) for entry in entries if entry.get("hash")
    )


def _package(entry: Mapping[str, Any], chosen: Collection[str]) -> LockedPackage:
    source = entry["source"]
    extras = {
        str(canonicalize_name(name)): _edges(edges, chosen)
        for name, edges in entry.get("optional-dependencies", {}).items()
    }
    groups = {
        f"group:{canonicalize_name(name)}": _edges(edges, chosen)
        for name, edges in entry.get("dev-dependencies", {}).items()
    }
    files = [*entry.get("wheels", ()), *([entry["sdist"]] if "sdist" in entry else ())]
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=text_at(entry, "version"),
        files=locked_files(files),
        edges=_edges(entry.get("dependencies", ()), chosen),
        extras=extras | groups,
        markers=tuple(_marker(text, chosen) for text in entry.get("resolution-markers", ())),
        index=text_at(source, "registry"),
        url=_url(source),
        directory=_directory(source),
        installable="virtual" not in source,
    )


def _directory(source: Mapping[str, Any]) -> str | None:
    kinds = ("editable", "directory", "virtual", "path")
    return next((posixpath.normpath(str(source[kind])) for kind in kinds if kind in source), None)


def _marker(text: str, chosen: Collection[str]) -> Marker:
    """Return a marker with what `chosen` decides: the extra of an environment can only have one name."""

    def decided(match: re.Match[str]) -> str:
        return f"os_name {'!=' if (match[2] in chosen) == (match[1] == '==') else '=='} ''"

    return Marker(_CONFLICTING.sub(decided, text))


def _url(source: Mapping[str, Any]) -> str:
    if "git" in source:
        parts = urlsplit(source["git"])
        # uv escapes the slashes of the subdirectory.
        subdirectory = text_at(dict(parse_qsl(parts.query)), "subdirectory")
        return git_reference(source["git"], parts.fragment, subdirectory)
    return url_reference(text_at(source, "url"), text_at(source, "subdirectory"))


def _edges(entries: Iterable[Mapping[str, Any]], chosen: Collection[str]) -> tuple[LockedEdge, ...]:
    return tuple(
        LockedEdge(
            canonicalize_name(entry["name"]),
            tuple(canonicalize_name(extra) for extra in entry.get("extra", ())),
            _marker(entry["marker"], chosen) if "marker" in entry else None,
            text_at(entry, "version"),
        )
        for entry in entries
    )
