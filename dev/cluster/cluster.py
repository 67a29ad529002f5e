"""Interface of all dev clusters, and the choice of the one that a command uses.

Called by `dev.__main__`. Implementations: the embedded node (`dev.embedded.cluster`), kind (`dev.kind.kind`)
and the cluster of the current context (`dev.current.current`).
"""

from collections.abc import Mapping
from typing import Protocol

from dev.cluster import choice
from dev.progress import StepProgress
from dev.settings import Settings


class DevCluster(Protocol):
    """A Kubernetes cluster with a registry and Crewyard. All methods but `env` raise DevClusterError."""

    def up(self) -> None:
        """Start what is not running and install Crewyard."""

    def down(self, purge: bool) -> None:
        """Stop everything; with `purge` also remove all stored data."""

    def deploy(self) -> None:
        """Build the service image and install it."""

    def develop(self) -> None:
        """Run the service from the checkout and restart it when a file changes, until Ctrl-C."""

    def env(self) -> dict[str, str]:
        """Return the shell variables. Works while nothing is running."""

    def problems(self) -> list[str]:
        """Return what should run and does not; empty if all is well."""

    def status(self) -> str:
        """Return a description of what is running, for people."""


def cluster_name(settings: Settings, environment: Mapping[str, str], starting: bool) -> str:
    """Return the cluster that a command uses; `starting` tells whether it is `up`. Raises DevClusterError."""
    from dev.kind import engine

    return choice.decide(
        choice.requested(environment),
        choice.recorded(settings),
        choice.has_embedded_data(settings),
        starting,
        lambda: engine.problem() is None,
    )


def create(
    cluster_name: str, settings: Settings, environment: Mapping[str, str], progress: StepProgress
) -> DevCluster:
    """Return the cluster with this name."""
    match cluster_name:
        case choice.CURRENT:
            from dev.current.current import CurrentContextCluster

            return CurrentContextCluster(settings, environment, progress)
        case choice.KIND:
            from dev.kind.kind import KindCluster

            return KindCluster(settings, environment, progress)
    from dev.embedded.cluster import EmbeddedCluster

    return EmbeddedCluster(settings, environment, progress)
