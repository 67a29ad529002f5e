"""Order in which waiting builds start: the projects share the installation's build slots. Pure.

The next slot goes to the project with the fewest builds; among equals to the one whose last build ended
earliest, then to the oldest build. Called by `controller.deployment.queue` and
`api.store.index.deployments.build_queue`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, order=True)
class QueuedBuild:
    """A Deployment that waits for a build slot; sorts by creation."""

    created: datetime
    name: str
    project: str


def fair_order(
    queued: Iterable[QueuedBuild], running: Mapping[str, int], last_ended: Mapping[str, str]
) -> list[QueuedBuild]:
    """Return the builds in the order in which they start.

    `running` counts the builds of a project that occupy a slot, `last_ended` is when its last build ended, in
    ISO 8601. The builds of one project keep their order.
    """
    shares = Counter(running)
    keys: dict[QueuedBuild, tuple[int, str]] = {}
    for build in sorted(queued):
        keys[build] = shares[build.project], last_ended.get(build.project, "")
        shares[build.project] += 1
    return sorted(keys, key=lambda build: (*keys[build], build))
