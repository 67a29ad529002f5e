"""A Project keeps two Deployments: with each new one the oldest goes, its image from the registry first.

Called by the tests of cut points.
"""

import asyncio
import secrets

from build.registry.repository import ImageRepository
from crds.kinds import DEPLOYMENT, POD, PROJECT
from crds.names import id_of
from crds.objects import Deployment
from tests.campaign.cuts.cluster_view import ClusterView
from tests.campaign.cuts.scenario import Scenario
from tests.campaign.cuts.stage import LINE, CutStage, built

KEPT = 2
PRUNING = f"crewyard.dev/project={LINE},app.kubernetes.io/component=prune"


class DeletedImages(Scenario):
    """A new commit is built; the subject is the Deployment that is one too many then."""

    name = "trim"
    only_essential = True
    essential = (
        "controller: create pods of a prune",
        "controller: create pods of a prune (2.)",
        "controller: delete deployments",
        "controller: delete pods",
        "controller: delete pods (2.)",
    )
    # The subject was built in the pass before, or long ago.
    detours = frozenset(("Building", "Built"))

    def __init__(self) -> None:
        self._images: dict[str, str] = {}

    async def act(self, stage: CutStage) -> str:
        retention = {"spec": {"retention": {"deployments": KEPT}}}
        await stage.testbed.kube.patch(PROJECT, LINE, retention)
        there = sorted(await self._there(stage), key=lambda one: one.order or 0)
        oldest = there[-KEPT]
        self._images[oldest.name] = str(oldest.image)
        sha = await stage.commit(secrets.token_hex(4))
        body = {"project": LINE, "source": {"git": {"commit": sha}}}
        made = await stage.testbed.ask("POST", "/v1/deployments", body)
        await built(stage, str(made["id"]))
        return oldest.name

    async def _there(self, stage: CutStage) -> list[Deployment]:
        found = map(Deployment, (await stage.testbed.kube.list(DEPLOYMENT)).items)
        return [one for one in found if one.project == LINE]

    async def view(self, stage: CutStage, subject: str) -> ClusterView:
        there = await self._there(stage)
        status, _ = await stage.testbed.call("GET", f"/v1/deployments/{id_of(subject)}")
        return {
            "there": subject in {one.name for one in there},
            "shown": status,
            "image": await asyncio.to_thread(_stored, stage, self._images[subject]),
            "kept": len(there),
            "active": [one.phase for one in there].count("Active"),
            "images of those kept": [
                await asyncio.to_thread(_stored, stage, str(one.image)) for one in there
            ],
            "prune pods": len((await stage.testbed.kube.list(POD, PRUNING)).items),
        }

    def is_finished(self, seen: ClusterView) -> bool:
        return not seen["there"] and not seen["prune pods"] and seen["shown"] == 404


def _stored(stage: CutStage, image: str) -> bool:
    """Whether the registry has it; asked at the address at which this machine reaches it."""
    registry, _, rest = image.partition("/")
    name, _, digest = rest.partition("@")
    place = f"{stage.testbed.host}:{registry.rpartition(':')[2]}/{name}"
    return ImageRepository(place, True).image(digest) is not None
