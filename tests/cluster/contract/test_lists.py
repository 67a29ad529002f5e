"""Lists of the real apiserver: full, names only, and by page."""

import pytest

from controller.run.admission import LIVE_POD_FIELDS
from crds import kinds
from kube.client import KubeClient


async def pods(kube: KubeClient, **labels: str) -> None:
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
async def test_names_equal_those_of_the_full_list(kube, monkeypatch, page):
    monkeypatch.setattr("kube.client.PAGE_SIZE", page)
    await pods(kube, of="one")
    await pods(kube, of="two")
    for labels in ("", "of=one", "of=none"):
        whole = await kube.list(kinds.POD, labels, LIVE_POD_FIELDS)
        assert await kube.names(kinds.POD, labels, LIVE_POD_FIELDS) == {
            item["metadata"]["name"] for item in whole.items
        }
    assert len(await kube.names(kinds.POD, "of=two")) == 5
    assert await kube.names(kinds.POD, "", "status.phase=Succeeded") == frozenset()


async def test_pages_share_the_version_of_the_first(kube, monkeypatch):
    monkeypatch.setattr("kube.client.PAGE_SIZE", 2)
    await pods(kube, of="one")
    found, versions = [], set()
    async for page in kube.pages(kinds.POD, "of"):
        assert len(page.items) <= 2
        if not found:
            await pods(kube, of="two")
            await kube.delete(kinds.POD, "one-4")
        found += [item["metadata"]["name"] for item in page.items]
        versions.add(page.resource_version)
    assert found == [f"one-{number}" for number in range(5)]
    assert len(versions) == 1
    assert [page.items async for page in kube.pages(kinds.POD, "of=none")] == [[]]
