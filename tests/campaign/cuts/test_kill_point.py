"""Equal writes have equal names; different writes have different names."""

import json

import pytest

from tests.campaign.cuts.kill_point import KillPoint, describe, points
from tests.campaign.proxy.call import ProxiedRequest

ROOT = "/apis/crewyard.dev/v1alpha1/namespaces/crews"


def call(method, path, **body):
    return ProxiedRequest(method, path, {}, json.dumps(body).encode())


def pod(component):
    return call("POST", "/api/v1/namespaces/crews/pods",
                metadata={"name": "x", "labels": {"app.kubernetes.io/component": component}})  # fmt: skip


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (call("POST", f"{ROOT}/runs", metadata={"name": "run-a"}), "create runs"),
        (pod("run"), "create pods of a run"),
        (call("PATCH", f"{ROOT}/runs/run-a/status", status={"phase": "Running", "startTime": "x"}),
         "patch runs/status Running"),
        (call("PATCH", f"{ROOT}/runs/run-a/status", status={"result": {}, "claim": {}}),
         "patch runs/status claim result"),
        (call("PATCH", f"{ROOT}/runs/run-a", metadata={"resourceVersion": "1", "ownerReferences": []}),
         "patch runs ownerReferences"),
        (call("PATCH", f"{ROOT}/deployments/dep-a", spec={"activation": 2}), "patch deployments activation"),
        (call("PATCH", f"{ROOT}/projects/p/status", status={"source": {}, "lastOrder": 4}),
         "patch projects/status lastOrder"),
        (call("POST", "/api/v1/namespaces/crews/events", reason="Activated"), "create events Activated"),
        (call("DELETE", f"{ROOT}/runs/run-a"), "delete runs"),
    ],
)  # fmt: skip
def test_kill_point_name_has_verb_and_kind(write, what):
    assert describe(write) == what


def test_equal_writes_are_numbered_per_process():
    one, other = pod("run"), call("DELETE", f"{ROOT}/runs/run-a")
    writes = [("api", one), ("controller", one), ("api", other), ("api", one)]
    assert points(writes) == [
        KillPoint("api", "create pods of a run"),
        KillPoint("controller", "create pods of a run"),
        KillPoint("api", "delete runs"),
        KillPoint("api", "create pods of a run", 2),
    ]
    assert str(points(writes)[-1]) == "api: create pods of a run (2.)"
