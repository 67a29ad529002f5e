"""Lists of the real apiserver: whole and by name, page by page."""

import pytest

from controller.run.admission import LIVE
from crds import kinds
from crds.kube import Kube


async def pods(kube: Kube, **labels: str) -> None:
    for number in range(5):
        body = {
            "metadata": {"name": f"{labels['of']}-{number}", "labels": labels},
            "spec": {
                "schedulingGates": [{"name": "crewyard.dev/never"}],
                "containers": [{"name": "crew", "image": "registry.crewyard.internal:5000/library/none:1"}],
            },
        }
        await kube.create(kinds.POD, body)


@pytest.mark.parametrize("page", [500, 2, 1])
async def test_names_are_those_of_the_whole_list(kube, monkeypatch, page):
    monkeypatch.setattr("crds.kube.PAGE", page)
    await pods(kube, of="one")
    await pods(kube, of="two")
    for labels in ("", "of=one", "of=none"):
        whole = await kube.list(kinds.POD, labels, LIVE)
        assert await kube.names(kinds.POD, labels, LIVE) == {one["metadata"]["name"] for one in whole.items}
    assert len(await kube.names(kinds.POD, "of=two")) == 5
    assert await kube.names(kinds.POD, "", "status.phase=Succeeded") == frozenset()
