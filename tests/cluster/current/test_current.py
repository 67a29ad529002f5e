"""`make up` on the cluster of the current context, for real: asked, refused, confirmed, and taken away again.

The cluster is a control plane of the test's own, with somebody else's objects
on it, so that it can be seen that nothing but Crewyard's was touched.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane import ControlPlane, missing

ROOT = Path(__file__).parents[3]
IMAGE = f"registry.example.com/team/crewyard/service@sha256:{'a' * 64}"
OTHERS = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices", "namespace": "shop"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "default"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till", "namespace": "shop"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "shopkeeper"},
            "rules": [],
        },
    ],
}


@dataclass
class Person:
    """Somebody who types make targets with this cluster as the current context."""

    cluster: ControlPlane
    state: Path

    def types(self, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "CREWYARD_STATE": str(self.state),
            "CREWYARD_CLUSTER": "current",
            "CREWYARD_REGISTRY": "registry.example.com/team",
            "CREWYARD_IMAGE": IMAGE,
            "CREWYARD_WAIT": "0",
            "KUBECONFIG": str(self.cluster.kubeconfig),
        }
        return subprocess.run(
            [sys.executable, "-m", "dev", *command.split()],
            cwd=ROOT,
            env={**os.environ, **settings, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def does(self, command: str) -> str:
        done = self.types(command, CONFIRM="test")
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing():
        pytest.skip(f"not on PATH: {', '.join(missing())}")
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as one:
        one.kubectl("create", "-f", "-", stdin=json.dumps(OTHERS))
        yield one


@pytest.fixture
def person(cluster):
    # A path of pytest's own would be too long for a state directory.
    with tempfile.TemporaryDirectory(prefix="yard-") as state:
        one = Person(cluster, Path(state, "state"))
        yield one
        one.does("down --purge")


def everything(cluster: ControlPlane) -> dict[tuple[str, str, str], tuple[str, str]]:
    """All objects but what the cluster writes by itself: uid and version by kind, namespace and name."""
    resources = set(cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split())
    resources -= {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses"}
    resources -= {name for name in resources if name.endswith(".metrics.k8s.io")}
    found = json.loads(cluster.kubectl("get", ",".join(sorted(resources)), "--all-namespaces", "-o", "json"))
    return {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): (
            item["metadata"].get("uid", ""),
            item["metadata"].get("resourceVersion", ""),
        )
        for item in found["items"]
        # Counters of the apiserver's own, and what it makes anew whenever it likes.
        if item["kind"] not in ("APIService", "IPAddress", "FlowSchema", "PriorityLevelConfiguration")
    }


def is_crewyards(thing: tuple[str, str, str]) -> bool:
    _, namespace, name = thing
    whole = name.startswith("crewyard-") or name.endswith(".crewyard.dev") or name == "crews"
    return namespace in ("crews", "crewyard-system") or (not namespace and whole)


def test_asked_confirmed_and_taken_away(person):
    before = everything(person.cluster)

    for word in ({}, {"CONFIRM": "production"}):
        asked = person.types("up", **word)
        assert asked.returncode == 2
        assert "context  test" in asked.stderr and "crewyard-controller" in asked.stderr
        assert "make up CREWYARD_CLUSTER=current CONFIRM=test" in asked.stderr
    assert everything(person.cluster) == before

    person.does("up")
    made = everything(person.cluster)
    assert [thing for thing in before if made.get(thing) != before[thing]] == []
    assert [thing for thing in made if thing not in before and not is_crewyards(thing)] == []
    assert {kind for kind, _, name in made if name == "crewyard-api"} >= {"Deployment", "ClusterRole", "Role"}

    status = person.types("status")
    assert "context  test" in status.stdout and "crewyard-api" in status.stdout
    exports = person.types("env").stdout
    assert "CREWYARD_API_KEY=crw_" in exports and f"KUBECONFIG={person.state}/current/kubeconfig" in exports
    refused = person.types("fit test")
    assert refused.returncode == 2 and "make demo, make e2e" in refused.stderr
    assert person.types("fit e2e").returncode == person.types("fit demo").returncode == 0

    project = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "spec": {}}
    project["metadata"] = {"name": "research", "namespace": "crews"}
    person.cluster.kubectl("create", "-f", "-", stdin=json.dumps(project))
    key = ("Secret", "crewyard-system", "crewyard-admin-key")

    unasked = person.types("down")
    assert unasked.returncode == 2 and "crewyard-data" in unasked.stderr
    assert everything(person.cluster)[key] == made[key]
    person.does("down")
    kept = everything(person.cluster)
    assert key in kept and ("PersistentVolumeClaim", "crewyard-system", "crewyard-data") in kept
    assert ("Project", "crews", "research") in kept
    assert not [
        thing for thing in kept if thing[0] in ("Deployment", "Role", "Service") and is_crewyards(thing)
    ]

    person.does("up")
    assert everything(person.cluster)[key] == made[key]
    person.does("down --purge")
    after = everything(person.cluster)
    assert after == before
    assert not (person.state / "current").exists()


def test_what_others_made_is_left_alone(person):
    cluster = person.cluster
    cluster.kubectl("create", "namespace", "crews")
    before = everything(cluster)
    assert "namespaces crews are there already" in person.types("up").stderr
    person.does("up")
    assert everything(cluster)["Namespace", "", "crews"] == before["Namespace", "", "crews"]
    person.does("down --purge")
    assert everything(cluster)["Namespace", "", "crews"] == before["Namespace", "", "crews"]

    cluster.kubectl("create", "clusterrole", "crewyard-api", "--verb=get", "--resource=pods")
    there = everything(cluster)
    refused = person.types("up", CONFIRM="test")
    assert refused.returncode == 1 and "ClusterRole crewyard-api" in refused.stderr
    assert everything(cluster) == there
    cluster.kubectl("delete", "clusterrole/crewyard-api", "namespace/crews")


def test_another_context_is_another_installation(person, tmp_path):
    person.does("up")
    other = tmp_path / "elsewhere"
    text = person.cluster.kubeconfig.read_text().replace("127.0.0.1:", "localhost:")
    other.write_text(text)
    refused = person.types("up", CONFIRM="test", KUBECONFIG=str(other))
    assert refused.returncode == 1 and "Switch back" in refused.stderr
