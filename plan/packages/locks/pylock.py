"""Reader of pylock.toml (PEP 751). Called by plan.packages.locks.lock."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.markers import Marker
from packaging.pylock import Package, Pylock, PylockValidationError

from .environment import TargetEnvironment, target_environments
from .graph import LockedFile, LockedPackage, LockMismatch, SelectedPackage, select_by_machine
from .uv_lock import git_reference, url_reference


def select_pylock(
    values: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str], python: str
) -> list[SelectedPackage]:
    """Return what the lock installs with these extras and groups, ordered by name.

    Raises LockMismatch, and ValueError where the file is invalid.
    """
    try:
        lock = Pylock.from_dict(values)
    except PylockValidationError as error:
        raise ValueError(str(error)) from None
    for kind, asked, known in (
        ("extra", extras, lock.extras),
        ("group", groups, lock.dependency_groups),
    ):
        for name in asked:
            if name not in (known or ()):
                raise LockMismatch(f"it has no {kind} {name}")
    requested = {
        "extras": frozenset(extras),
        "dependency_groups": frozenset((*groups, *(lock.default_groups or ()))),
    }
    packages = {id(package): _locked(package) for package in lock.packages}
    reached = {}
    for environment in target_environments(python):
        if not any(_holds(marker, environment, requested) for marker in lock.environments or (None,)):
            raise LockMismatch(
                f"it is for other environments than Linux {environment.machine}, Python {python}"
            )
        reached[environment] = [
            packages[id(package)]
            for package in lock.packages
            if _holds(package.marker, environment, requested)
        ]
    return select_by_machine(reached)


def _holds(
    marker: Marker | None, environment: TargetEnvironment, requested: Mapping[str, frozenset[str]]
) -> bool:
    values: dict[str, Any] = {**environment.values, **requested}
    return marker is None or marker.evaluate(values, context="lock_file")


def _locked(package: Package) -> LockedPackage:
    files: Iterable[Any] = (*(package.wheels or ()), *((package.sdist,) if package.sdist else ()))
    url, directory = "", None
    if vcs := package.vcs:
        url = git_reference(vcs.url or str(vcs.path), vcs.commit_id, vcs.subdirectory or "")
    if package.directory:
        directory = posixpath.join(package.directory.path, package.directory.subdirectory or "")
    if archive := package.archive:
        files = (archive,)
        url = url_reference(archive.url or "", archive.subdirectory or "")
        directory = None if archive.url else archive.path
    return LockedPackage(
        name=package.name,
        version=str(package.version or ""),
        files=tuple(
            LockedFile(f"{name}:{value}", file.url or "")
            for file in files
            for name, value in file.hashes.items()
        ),
        index=package.index or "",
        url=url,
        directory=None if directory is None else posixpath.normpath(directory),
    )
