"""Namespaces in which the apiserver refuses calls, in one pass over the runs of all.

A namespace whose roles are missing must not stop the others. Called by the recovery and the pruning of runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from kube import errors
from kube.client import KubeClient

log = structlog.get_logger()


class RefusedNamespaces:
    """The namespaces of a pass in which a call was refused; None is the installation's own."""

    def __init__(self) -> None:
        self.names = set[str | None]()

    @contextmanager
    def skip(self, kube: KubeClient, namespace: str | None, run: str) -> Iterator[None]:
        """Skip the rest of the block if the apiserver refuses a call in it; log each namespace once.

        Raises KubeUnavailable: then no call can succeed.
        """
        try:
            yield
        except errors.KubeUnavailable:
            raise
        except errors.KubeError as error:
            if namespace not in self.names:
                self.names.add(namespace)
                log.warning(
                    "run not deleted", namespace=kube.at(namespace).namespace, run=run, error=str(error)
                )
