"""Readers of poetry.lock and pdm.lock. Called by plan.packages.locks.lock."""

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from ..poetry_table import pep440
from .graph import LockedEdge, LockedPackage, LockGraph
from .uv_lock import git_reference, locked_files


def read_poetry_lock(values: Mapping[str, Any]) -> LockGraph:
    """Return the packages of a poetry.lock. Raises KeyError, TypeError, ValueError where it is damaged."""
    # Poetry before 1.5 wrote the hashes in one table.
    files = values.get("metadata", {}).get("files", {})
    return LockGraph(_poetry_package(entry, files) for entry in values.get("package", ()))


def _poetry_package(entry: Mapping[str, Any], files: Mapping[str, Any]) -> LockedPackage:
    source = entry.get("source", {})
    kind, url = source.get("type", ""), str(source.get("url", ""))
    edges = tuple(
        _poetry_edge(name, option)
        for name, options in entry.get("dependencies", {}).items()
        for option in (options if isinstance(options, list) else [options])
    )
    if kind == "git":
        url = git_reference(url, str(source["resolved_reference"]), str(source.get("subdirectory", "")))
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=str(entry["version"]),
        files=locked_files(entry.get("files") or files.get(entry["name"], ())),
        edges=edges,
        markers=_poetry_markers(entry.get("markers") or {}, entry.get("groups", ())),
        requires_python=str(entry.get("python-versions", "")),
        index=url if kind == "legacy" else "",
        url=url if kind in ("git", "url") else "",
        directory=posixpath.normpath(url) if kind in ("directory", "file") else None,
    )


def _poetry_markers(markers: str | Mapping[str, str], groups: Iterable[str]) -> tuple[Marker, ...]:
    """Return the markers of a package: a group without one of its own needs the package everywhere."""
    if isinstance(markers, str):
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
        specifiers=_poetry_specifiers(str(option.get("version", "*"))),
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
    extras: dict[tuple[str, str], dict[str, tuple[LockedEdge, ...]]] = {}
    for entry in entries:
        for extra in entry.get("extras", ()):
            of_package = extras.setdefault((entry["name"], str(entry.get("version", ""))), {})
            of_package[canonicalize_name(extra)] = _pdm_edges(entry)
    return LockGraph(
        _pdm_package(entry, extras.get((entry["name"], str(entry.get("version", ""))), {}))
        for entry in entries
        if not entry.get("extras")
    )


def _pdm_package(entry: Mapping[str, Any], extras: Mapping[str, tuple[LockedEdge, ...]]) -> LockedPackage:
    url = str(entry.get("url", ""))
    if "git" in entry:
        url = git_reference(str(entry["git"]), str(entry["revision"]), str(entry.get("subdirectory", "")))
    return LockedPackage(
        name=canonicalize_name(entry["name"], validate=True),
        version=str(entry.get("version", "")),
        files=locked_files(entry.get("files", ())),
        edges=_pdm_edges(entry),
        extras=extras,
        markers=(Marker(entry["marker"]),) if entry.get("marker") else (),
        requires_python=str(entry.get("requires_python", "")),
        url=url,
        directory=posixpath.normpath(str(entry["path"])) if "path" in entry else None,
    )


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
