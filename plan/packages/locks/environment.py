"""Environments for which locks and markers are evaluated. Called by plan.packages and its readers of locks.

The machine of the node and the patch release of the base image's Python are unknown here; a lock is
therefore evaluated for each machine, and for the first and the last release of the crew's Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.markers import Marker

MACHINES = ("x86_64", "aarch64")
_FIRST_PATCH, _LAST_PATCH = 0, 99


@dataclass(frozen=True, eq=False)
class TargetEnvironment:
    """One machine with one release of Python; `values` are those of its environment markers."""

    machine: str
    values: Mapping[str, str]

    def meets(self, marker: Marker | None, extra: str = "") -> bool:
        """Return whether a marker holds, with `extra` requested."""
        return marker is None or marker.evaluate({**self.values, "extra": extra})


def target_environments(python: str) -> tuple[TargetEnvironment, ...]:
    """Return the environments of `python` (such as 3.12); the last one of a machine decides conflicts."""
    return tuple(
        TargetEnvironment(machine, _values(machine, python, patch))
        for machine in MACHINES
        for patch in (_FIRST_PATCH, _LAST_PATCH)
    )


def is_met_anywhere(marker: Marker | None, python: str) -> bool:
    """Return whether a marker holds on a machine with `python` (such as 3.12)."""
    return any(environment.meets(marker) for environment in target_environments(python))


def _values(machine: str, python: str, patch: int) -> dict[str, str]:
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.{patch}",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{python}.{patch}",
        "python_version": python,
        "sys_platform": "linux",
    }
