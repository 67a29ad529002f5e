"""What any ground offers, whatever carries the cluster, and which one a command means.

`dev.__main__` knows only this. The grounds are the embedded node
(`dev.embedded.cluster`), kind (`dev.kind`) and the cluster of the current context
(`dev.current`).
"""

from collections.abc import Mapping
from typing import Protocol

from dev.cluster import choice
from dev.progress import Progress
from dev.settings import Settings


class DevCluster(Protocol):
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


def cluster_name(settings: Settings, environment: Mapping[str, str], starting: bool) -> str:
    """Which cluster a command means; `starting` is whether it is `up`. Raises GroundError."""
    from dev.kind import engine

    return choice.decide(
        choice.requested(environment),
        choice.recorded(settings),
        choice.has_embedded_data(settings),
        starting,
        lambda: engine.problem() is None,
    )


def create(
    cluster_name: str, settings: Settings, environment: Mapping[str, str], progress: Progress
) -> DevCluster:
    """The ground of this name."""
    match cluster_name:
        case choice.CURRENT:
            from dev.current.current import CurrentContextCluster

            return CurrentContextCluster(settings, environment, progress)
        case choice.KIND:
            from dev.kind.kind import KindCluster

            return KindCluster(settings, environment, progress)
    from dev.embedded.cluster import EmbeddedCluster

    return EmbeddedCluster(settings, environment, progress)
