"""Readers of poetry.lock and pdm.lock. Called by plan.packages.locks.lock."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..poetry_table import pep440
from .graph import LockedEdge, LockedPackage, LockGraph
from .uv_lock import git_reference, locked_files, text_at, url_reference


def read_poetry_lock(values: Mapping[str, Any]) -> LockGraph:
    """Return the packages of a poetry.lock. Raises KeyError, TypeError, ValueError where it is damaged."""
    # Poetry before 1.5 wrote the hashes in one table.
    files = values.get("metadata", {}).get("files", {})
    return LockGraph(_poetry_package(entry, files) for entry in values.get("package", ()))


def _poetry_package(entry: Mapping[str, Any], files: Mapping[str, Any]) -> LockedPackage:
    source = entry.get("source", {})
    kind, url, subdirectory = (text_at(source, key) for key in ("type", "url", "subdirectory"))
    edges = tuple(
        _poetry_edge(name, option)
        for name, options in entry.get("dependencies", {}).items()
        for option in (options if isinstance(options, list) else [options])
    )
    if kind == "git":
        url = git_reference(url, str(source["resolved_reference"]), subdirectory)
    if kind == "url":
        url = url_reference(url, subdirectory)
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=str(entry["version"]),
        files=locked_files(entry.get("files") or files.get(entry["name"], ())),
        edges=edges,
        markers=_poetry_markers(entry.get("markers"), entry.get("groups", ())),
        requires_python=text_at(entry, "python-versions"),
        index=url if kind == "legacy" else "",
        url=url if kind in ("git", "url") else "",
        directory=posixpath.normpath(url) if kind in ("directory", "file") else None,
    )


def _poetry_markers(markers: str | Mapping[str, str] | None, groups: Iterable[str]) -> tuple[Marker, ...]:
    """Return the markers of a package: a group without one of its own needs the package everywhere."""
    if markers and isinstance(markers, str):
        return (Marker(markers),)
    if not markers or not set(groups) <= set(markers):
        return ()
    return (Marker(" or ".join(f"({text})" for text in markers.values())),)


def _poetry_edge(name: str, constraint: str | Mapping[str, Any]) -> LockedEdge:
    option: Mapping[str, Any] = constraint if isinstance(constraint, dict) else {"version": constraint}
    return LockedEdge(
        canonicalize_name(name),
        tuple(canonicalize_name(extra) for extra in option.get("extras", ())),
        Marker(option["markers"]) if option.get("markers") else None,
        specifiers=_poetry_specifiers(text_at(option, "version")),
    )


def _poetry_specifiers(constraint: str) -> tuple[SpecifierSet, ...]:
    """Return the alternatives of a constraint; none where PEP 440 cannot express it."""
    try:
        return tuple(SpecifierSet(pep440(text)) for text in re.split(r"\|\|?", constraint))
    except InvalidSpecifier:
        return ()


def read_pdm_lock(values: Mapping[str, Any]) -> LockGraph:
    """Return the packages of a pdm.lock. Raises KeyError, TypeError, ValueError where it is damaged."""
    entries = values.get("package", ())
    extras: dict[tuple[str, str], dict[str, tuple[LockedEdge, ...]]] = defaultdict(dict)
    for entry in entries:
        for extra in entry.get("extras", ()):
            extras[_pdm_release(entry)][canonicalize_name(extra)] = _pdm_edges(entry)
    return LockGraph(
        _pdm_package(entry, extras[_pdm_release(entry)]) for entry in entries if not entry.get("extras")
    )


def _pdm_release(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and version, which an entry with extras has in common with the one without."""
    return entry["name"], text_at(entry, "version")


def _pdm_package(entry: Mapping[str, Any], extras: Mapping[str, tuple[LockedEdge, ...]]) -> LockedPackage:
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=text_at(entry, "version"),
        files=locked_files(entry.get("files", ())),
        edges=_pdm_edges(entry),
        extras=extras,
        markers=(Marker(entry["marker"]),) if entry.get("marker") else (),
        requires_python=text_at(entry, "requires_python"),
        url=_pdm_url(entry),
        directory=posixpath.normpath(str(entry["path"])) if "path" in entry else None,
    )


def _pdm_url(entry: Mapping[str, Any]) -> str:
    subdirectory = text_at(entry, "subdirectory")
    if "git" in entry:
        return git_reference(str(entry["git"]), str(entry["revision"]), subdirectory)
    return url_reference(text_at(entry, "url"), subdirectory)


def _pdm_edges(entry: Mapping[str, Any]) -> tuple[LockedEdge, ...]:
    return tuple(requirement_edge(Requirement(text)) for text in entry.get("dependencies", ()))


def requirement_edge(requirement: Requirement) -> LockedEdge:
    """Return the edge of a requirement."""
    return LockedEdge(
        canonicalize_name(requirement.name),
        tuple(sorted(canonicalize_name(extra) for extra in requirement.extras)),
        requirement.marker,
        specifiers=(requirement.specifier,),
    )
