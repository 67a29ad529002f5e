"""A new installation is ready only when the quota of the crews counts its kinds."""

import io
from typing import Any

import pytest

from dev.cluster import quota
from dev.cluster.kube_client import KubeApi
from dev.errors import DevClusterError
from dev.progress import StepProgress

HARD = {"pods": "5000", "count/projects.crewyard.dev": "5000"}


class CountingKubeApi(KubeApi):
    """An apiserver whose quota counts Projects from the given list on."""

    def __init__(self, uncounted_lists: int) -> None:
        self.lists = 0
        self.uncounted_lists = uncounted_lists

    def call(self, method: str, path: str, body: object = None) -> Any:
        assert (method, path) == ("GET", "/api/v1/namespaces/crews/resourcequotas")
        self.lists += 1
        used = {"pods": "0"} if self.lists <= self.uncounted_lists else dict.fromkeys(HARD, "0")
        return {"items": [{"spec": {"hard": HARD}, "status": {"hard": HARD, "used": used}}]}

    def text(self, path: str) -> str:
        raise AssertionError(path)


def test_a_quota_without_a_count_of_a_kind_is_incomplete():
    assert quota.uncounted([{"spec": {"hard": HARD}}]) == ["count/projects.crewyard.dev", "pods"]
    used = {"used": {"pods": "3"}}
    assert quota.uncounted([{"spec": {"hard": HARD}, "status": used}]) == ["count/projects.crewyard.dev"]
    assert quota.uncounted([{"spec": {}}]) == [] == quota.uncounted([])


def test_up_waits_until_the_quota_counts(monkeypatch):
    monkeypatch.setattr(quota, "_PAUSE_SECONDS", 0)
    kube, output = CountingKubeApi(uncounted_lists=3), io.StringIO()
    quota.wait_counted(kube, StepProgress(output))
    assert kube.lists == 4 and "quota" in output.getvalue()


def test_a_quota_that_never_counts_is_reported(monkeypatch):
    monkeypatch.setattr(quota, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(quota, "_COUNT_TIMEOUT_SECONDS", 0)
    with pytest.raises(
        DevClusterError, match=r"no count of count/projects\.crewyard\.dev, so no Project can"
    ):
        quota.wait_counted(CountingKubeApi(uncounted_lists=1_000_000), StepProgress(io.StringIO()))
