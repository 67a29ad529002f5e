"""The line of builds as far as is known: who may begin. Computed once for each change, not for each look.

Hundreds may wait, each of them looked at again every few seconds. Called by
`controller.deployment.build_admission`.
"""

from dataclasses import dataclass, field

from controller.config import Config
from controller.deployment import queue
from controller.runtime.cache import Known
from crds import kinds
from crds.objects import Deployment

Twin = tuple[str, str]
"""A Project and a source key."""


@dataclass(frozen=True)
class View:
    """What the line is like at one moment. `first` are those that may begin, `built` what is built."""

    deployments: tuple[Deployment, ...]
    standing: tuple[Deployment, ...]
    first: frozenset[str]
    built: frozenset[Twin]


@dataclass
class Line:
    """The present view, from memory."""

    known: Known
    config: Config
    _seen: tuple[int, int] = (-1, -1)
    _view: View = field(default=View((), (), frozenset(), frozenset()))

    def view(self) -> View:
        """The line as of now.

        A build whose pod was made and not recorded takes no place in it: that comes to light where a
        place is taken, on what the apiserver lists.
        """
        now = (self.known.changes(kinds.DEPLOYMENT), self.known.changes(kinds.PROJECT))
        if now != self._seen:
            self._seen, self._view = now, self._look()
        return self._view

    def _look(self) -> View:
        deployments = tuple(Deployment(raw) for raw in self.known.all(kinds.DEPLOYMENT))
        there = {raw["metadata"]["name"] for raw in self.known.all(kinds.PROJECT)}
        # One whose Project is not there yet holds up nobody.
        standing = tuple(
            other for other in deployments if queue.stands_in_line(other) and other.project in there
        )
        taken = queue.busy(deployments, (), {})
        keys = ((other, other.status.get("sourceKey")) for other in deployments)
        built = frozenset((other.project, str(key)) for other, key in keys if key and other.built)
        return View(deployments, standing, queue.first(standing, taken, self.config), built)
