"""Per-pod process limits in the kubelets' configuration."""

import pytest

from dev.cluster import pod_pids
from dev.embedded.components import kubelet
from dev.settings import Settings


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"kubeletconfig": {"podPidsLimit": 1024}}, 1024),
        ({"kubeletconfig": {"podPidsLimit": -1}}, None),
        ({"kubeletconfig": {"podPidsLimit": 0}}, None),
        ({"kubeletconfig": {"podPidsLimit": 1 << 22}}, None),
        ({"kubeletconfig": {}}, None),
        ({}, None),
    ],
)
def test_only_effective_limits_count(answer, expected):
    assert pod_pids.parse_configz(answer) == expected


def test_nodes_without_one_are_named():
    assert pod_pids.problem({"a": 1024, "b": 100}) is None
    problem = pod_pids.problem({"b": None, "a": 1024, "c": None})
    assert problem is not None and "b, c has no podPidsLimit" in problem


def test_the_dev_cluster_has_a_limit(tmp_path):
    answer = {"kubeletconfig": kubelet.configuration(Settings(tmp_path))}
    assert pod_pids.problem({"crewyard": pod_pids.parse_configz(answer)}) is None
