"""What any ground offers, whatever carries the cluster.

`dev.__main__` knows only this. The embedded node is the one ground there is;
a cluster in Docker or one that runs already would be others.
"""

from collections.abc import Mapping
from typing import Protocol

from dev.progress import Progress
from dev.settings import Settings


class Ground(Protocol):
    """A Kubernetes with a registry, on which the service is installed. All but `env` raise GroundError."""

    def up(self) -> None:
        """Starts all that does not run yet and installs the service."""

    def down(self, purge: bool) -> None:
        """Stops all; with `purge` it also removes all that was kept."""

    def deploy(self) -> None:
        """Builds the service's image and installs it."""

    def env(self) -> dict[str, str]:
        """The variables for a shell. Known also while nothing runs."""

    def problems(self) -> list[str]:
        """What does not run of what should; empty when all does."""

    def status(self) -> str:
        """What runs, as text for people."""


def chosen(settings: Settings, environment: Mapping[str, str], progress: Progress) -> Ground:
    """The ground for this machine."""
    from dev.embedded import Embedded

    return Embedded(settings, environment, progress)
