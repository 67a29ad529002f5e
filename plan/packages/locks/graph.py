"""Packages of a lock and their dependencies, and the selection of those that a crew needs. Pure.

The readers of uv.lock, poetry.lock and pdm.lock return a LockGraph.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ...python import allows
from .environment import MACHINES, TargetEnvironment, target_environments


class LockMismatch(Exception):
    """The lock does not have what is asked for; the text says what."""


@dataclass(frozen=True)
class LockedEdge:
    """A dependency on a package of the lock; `version` is empty where the lock does not say which one.

    The version meets one of `specifiers`, or any where there are none.
    """

    name: str
    extras: tuple[str, ...] = ()
    marker: Marker | None = None
    version: str = ""
    specifiers: tuple[SpecifierSet, ...] = ()

    def allows(self, version: str) -> bool:
        """Return whether the dependency allows that version."""
        return not self.specifiers or any(each.contains(version, True) for each in self.specifiers)


@dataclass(frozen=True)
class LockedFile:
    """A wheel or source archive of a package: its hash as `sha256:…`, and its URL, where the lock has it."""

    hash: str
    url: str = ""


@dataclass(frozen=True, eq=False)
class LockedPackage:
    """One pinned package. `markers`: it applies where one of them holds, or where there are none.

    It comes from the package index `index` (empty or the public one: the default), from `url`, or from
    `directory`, relative to the lock; `installable` is False for a directory that is no package.
    """

    name: str
    version: str = ""
    files: tuple[LockedFile, ...] = ()
    edges: tuple[LockedEdge, ...] = ()
    extras: Mapping[str, tuple[LockedEdge, ...]] = field(default_factory=dict)
    markers: tuple[Marker, ...] = ()
    requires_python: str = ""
    index: str = ""
    url: str = ""
    directory: str | None = None
    installable: bool = True

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of the files."""
        return tuple(file.hash for file in self.files)

    def applies(self, environment: TargetEnvironment, extras: Sequence[str]) -> bool:
        """Return whether the package is for that environment and these extras of the crew's project."""
        if not allows(self.requires_python, environment.values["python_version"]):
            return False
        if not self.markers:
            return True
        return any(environment.meets(marker, extra) for marker in self.markers for extra in ("", *extras))


@dataclass(frozen=True)
class SelectedPackage:
    """A package that the crew needs, on these machines."""

    package: LockedPackage
    machines: tuple[str, ...]

    @property
    def marker(self) -> str:
        """The marker for a requirement line; empty where the package is needed on every machine."""
        return "" if self.machines == MACHINES else f"platform_machine == '{self.machines[0]}'"


class LockGraph:
    """The packages of a lock, by name."""

    def __init__(self, packages: Iterable[LockedPackage]) -> None:
        self._by_name: dict[str, list[LockedPackage]] = {}
        for package in packages:
            self._by_name.setdefault(package.name, []).append(package)

    def packages(self) -> Iterator[LockedPackage]:
        """Yield every package of the lock."""
        for packages in self._by_name.values():
            yield from packages

    def select(
        self, roots: Sequence[LockedEdge], python: str, extras: Sequence[str] = ()
    ) -> list[SelectedPackage]:
        """Return what `roots` need with `python`, ordered by name. Raises LockMismatch.

        `extras` are those of the crew's project, which markers of packages may name.
        """
        return select_by_machine(
            {
                environment: self._reachable(roots, environment, extras)
                for environment in target_environments(python)
            }
        )

    def _reachable(
        self, roots: Sequence[LockedEdge], environment: TargetEnvironment, extras: Sequence[str]
    ) -> Iterable[LockedPackage]:
        # All edges of a package decide its version, so a version waits for a pass that finds no more of them.
        decisive: dict[str, set[LockedEdge]] = {}
        while True:
            known = sum(map(len, decisive.values()))
            reached = self._traverse(roots, environment, extras, decisive)
            if sum(map(len, decisive.values())) == known:
                return reached

    def _traverse(
        self,
        roots: Sequence[LockedEdge],
        environment: TargetEnvironment,
        extras: Sequence[str],
        decisive: dict[str, set[LockedEdge]],
    ) -> Iterable[LockedPackage]:
        """Return what `roots` reach; add the edges of packages with several versions to `decisive`."""
        visited: set[tuple[LockedPackage, str]] = set()
        pending = [edge for edge in roots if environment.meets(edge.marker)]
        while pending:
            edge = pending.pop()
            package = self._candidate(edge, environment, extras, decisive)
            for extra in ("", *edge.extras):
                if (package, extra) not in visited:
                    visited.add((package, extra))
                    following = (
                        package.edges if not extra else (*package.edges, *package.extras.get(extra, ()))
                    )
                    pending += [edge for edge in following if environment.meets(edge.marker, extra)]
        return {package: None for package, _ in visited}

    def _candidate(
        self,
        edge: LockedEdge,
        environment: TargetEnvironment,
        extras: Sequence[str],
        decisive: dict[str, set[LockedEdge]],
    ) -> LockedPackage:
        known = self._by_name.get(edge.name, [])
        matches = [
            package
            for package in known
            if edge.version in ("", package.version) and package.applies(environment, extras)
        ]
        if not matches:
            raise LockMismatch(f"it has no {edge.name} {edge.version}".rstrip())
        if len(matches) == 1:
            return matches[0]
        edges = decisive.setdefault(edge.name, set())
        edges.add(edge)
        allowed = [package for package in matches if edge.allows(package.version)] or matches
        common = [package for package in allowed if all(each.allows(package.version) for each in edges)]
        return max(common or allowed, key=lambda package: Version(package.version or "0"))


def select_by_machine(
    reached: Mapping[TargetEnvironment, Iterable[LockedPackage]],
) -> list[SelectedPackage]:
    """Return the packages of all environments, each with the machines that need it, ordered by name."""
    chosen: dict[tuple[str, str], LockedPackage] = {}
    for environment, packages in reached.items():
        chosen |= {(environment.machine, package.name): package for package in packages}
    machines: dict[LockedPackage, tuple[str, ...]] = {}
    for (machine, _), package in chosen.items():
        machines[package] = (*machines.get(package, ()), machine)
    selected = [SelectedPackage(package, names) for package, names in machines.items()]
    return sorted(selected, key=lambda entry: (entry.package.name, entry.package.version))
