"""Pins of a project, from a lock, with its hashes. Called by plan.packages.dependencies."""

import posixpath
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...errors import DEPENDENCY_RESOLUTION, PlanError
from ...python import allows
from ...source import Files, text_of
from .environment import target_environments
from .graph import LockGraph, LockMismatch, SelectedPackage
from .poetry_lock import read_pdm_lock, read_poetry_lock, requirement_edge
from .pylock import select_pylock
from .pylock_writer import pylock_text
from .uv_lock import is_public_index, read_uv_lock, uv_roots

UV_LOCK, PYLOCK = "uv.lock", "pylock.toml"
LOCKS = (UV_LOCK, PYLOCK, "poetry.lock", "pdm.lock")
# Beside a script with inline metadata: main.py.lock.
SCRIPT_LOCK_SUFFIX = ".py.lock"
_LOCK_COMMANDS = {
    UV_LOCK: "uv lock",
    PYLOCK: "the tool that wrote it, for example uv export --format pylock.toml -o pylock.toml",
    "poetry.lock": "poetry lock",
    "pdm.lock": "pdm lock",
}
_MAX_LOCK_BYTES = 16 << 20
_HASH = re.compile(r"[a-z0-9]+:[0-9a-f]+")
_URL = re.compile(r"(git\+)?(https?|ssh)://[^\s;'\"]+")


@dataclass(frozen=True)
class LockRequest:
    """What a lock is asked for: the project in `member` (relative to the lock), for `python`.

    `requirements` are those of `pyproject`, including those of the extras and groups. `pyproject` may be a
    script; then `member` is empty.
    """

    pyproject: str
    requirements: tuple[Requirement, ...]
    python: str
    member: str = ""
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class LockedPins:
    """All packages of a project: `lines` with versions for pip, `direct` lines from git.

    `directories` are local projects, relative to the lock. `pylock` is a pylock.toml for `lines`, with the
    URL of each file; it is empty where the lock lacks URLs or hashes.
    """

    lines: tuple[str, ...]
    direct: tuple[str, ...]
    directories: tuple[str, ...]
    names: frozenset[str]
    pylock: str = ""


class StaleLockError(PlanError):
    """A lock that does not fit what its project declares, or the crew's Python."""


def read_lock(files: Files, path: str, request: LockRequest) -> LockedPins:
    """Return the pins of the lock `path`. Raises PlanError(DependencyResolution), StaleLockError too."""
    kind = posixpath.basename(path)
    is_script = kind.endswith(SCRIPT_LOCK_SUFFIX)
    command = f"uv lock --script {request.pyproject}" if is_script else _LOCK_COMMANDS[kind]
    hint = f"Lock again with {command}, and commit {kind}."
    try:
        values = tomllib.loads(text_of(files, path, _MAX_LOCK_BYTES))
        python = values.get("requires-python", "")
        if not allows(str(python), request.python):
            raise LockMismatch(f"it is for Python {python}, not for {request.python}")
        selected = (
            _select_from(read_uv_lock(values), request) if is_script else _READERS[kind](values, request)
        )
        manifest = values.get("manifest", {})
        overridden = {canonicalize_name(entry["name"]) for entry in manifest.get("overrides", ())}
        _check_requirements(selected, request, overridden)
        return _pins(selected, request.member, path)
    except LockMismatch as error:
        problem = f"{path} does not fit {request.pyproject}: {error}"
        raise StaleLockError(DEPENDENCY_RESOLUTION, problem, hint) from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise PlanError(DEPENDENCY_RESOLUTION, f"{path} is damaged: {_shown(error)}", hint) from None


def _select_uv(values: Mapping[str, Any], request: LockRequest) -> list[SelectedPackage]:
    lock = read_uv_lock(values, request.member, request.extras, request.groups)
    return lock.select(uv_roots(lock, request.member, request.extras, request.groups), request.python)


def _select_pylock(values: Mapping[str, Any], request: LockRequest) -> list[SelectedPackage]:
    return select_pylock(values, request.extras, request.groups, request.python)


def _select_from(lock: LockGraph, request: LockRequest) -> list[SelectedPackage]:
    """Return what the project's requirements need: these locks do not list them."""
    roots = [requirement_edge(requirement) for requirement in request.requirements]
    return lock.select(roots, request.python, request.extras)


_READERS: Mapping[str, Callable[[Mapping[str, Any], LockRequest], list[SelectedPackage]]] = {
    UV_LOCK: _select_uv,
    PYLOCK: _select_pylock,
    "poetry.lock": lambda values, request: _select_from(read_poetry_lock(values), request),
    "pdm.lock": lambda values, request: _select_from(read_pdm_lock(values), request),
}


def _check_requirements(
    selected: Sequence[SelectedPackage], request: LockRequest, overridden: Collection[str]
) -> None:
    """Raise LockMismatch where the selection lacks a requirement; uv overrides those in `overridden`."""
    chosen = {
        (machine, entry.package.name): entry.package for entry in selected for machine in entry.machines
    }
    # The last environment of a machine has the newest release of the Python.
    newest = {environment.machine: environment for environment in target_environments(request.python)}
    for environment, requirement in product(newest.values(), request.requirements):
        name = canonicalize_name(requirement.name)
        if name in overridden or not environment.meets(requirement.marker):
            continue
        package = chosen.get((environment.machine, name))
        if package is None:
            raise LockMismatch(f"it has no {name}")
        is_released = not package.url and package.directory is None
        if is_released and not requirement.specifier.contains(package.version, prereleases=True):
            raise LockMismatch(f"it has {name} {package.version}, not {requirement.specifier}")


def _pins(selected: Sequence[SelectedPackage], member: str, path: str) -> LockedPins:
    lines: list[str] = []
    direct: list[str] = []
    directories: list[str] = []
    indexes: dict[str, None] = {}
    files: list[SelectedPackage] = []
    released = [entry for entry in selected if not entry.package.url and entry.package.directory is None]
    hashed = all(entry.package.hashes for entry in released)
    for entry in selected:
        package, marker = entry.package, f" ; {entry.marker}" if entry.marker else ""
        if package.directory is not None:
            if package.directory != member and package.installable:
                directories.append(package.directory)
        elif package.url:
            if not _URL.fullmatch(package.url):
                raise ValueError(f"{package.name} has the address {package.url!r}")
            line = f"{package.name} @ {package.url}{marker}"
            if package.hashes and hashed:
                lines.append(line + _hash_options(package.hashes))
                files.append(entry)
            else:
                direct.append(line)
        else:
            if package.index and not is_public_index(package.index):
                _check_index(package.name, package.index, hashed, path)
                indexes[f"--extra-index-url {package.index}"] = None
            options = _hash_options(package.hashes) if hashed else ""
            lines.append(f"{package.name}=={Version(package.version)}{marker}{options}")
            files.append(entry)
    names = frozenset(entry.package.name for entry in selected)
    pylock = pylock_text(files) if hashed else ""
    return LockedPins((*indexes, *lines), tuple(direct), tuple(directories), names, pylock)


def _check_index(name: str, index: str, hashed: bool, path: str) -> None:
    if not _URL.fullmatch(index):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{path}: {name} comes from {index}, which is not the address of a package index",
            "Lock it from an index that the build can reach.",
        )
    if not hashed:
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{path}: {name} comes from {index}, but the lock lacks hashes",
            "Without hashes another index could offer a package of that name; lock with hashes.",
        )


def _hash_options(hashes: Sequence[str]) -> str:
    for value in hashes:
        if not _HASH.fullmatch(value):
            raise ValueError(f"{value[:100]!r} is not a hash")
    return "".join(f" --hash={value}" for value in sorted(set(hashes)))


def _shown(error: Exception) -> str:
    text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return " ".join(text.split())[:300]
