"""`make up` on the cluster of the current context: refusal, confirmation, installation and removal.

The cluster is a private control plane with foreign objects, to check that `make`
changes only Crewyard's.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.testbed.controlplane import ControlPlane, missing_programs

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[3]
IMAGE = f"registry.example.com/team/crewyard/service@sha256:{'a' * 64}"
FOREIGN_OBJECTS = {
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
class MakeUser:
    """A user who runs make targets with this cluster as the current context."""

    cluster: ControlPlane
    state: Path

    def make(self, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
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

    def make_confirmed(self, command: str) -> str:
        done = self.make(command, CONFIRM="test")
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if missing_programs():
        pytest.skip(f"not on PATH: {', '.join(missing_programs())}")
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as one:
        one.kubectl("create", "-f", "-", stdin=json.dumps(FOREIGN_OBJECTS))
        wait_until_settled(one)
        yield one


@pytest.fixture
def user(cluster):
    # A pytest path would be too long for a state directory.
    with tempfile.TemporaryDirectory(prefix="crewyard-test-") as state:
        created = MakeUser(cluster, Path(state, "state"))
        yield created
        created.make_confirmed("down --purge")


# Resources that the control plane writes: events, leases, derived objects.
CONTROL_PLANE_RESOURCES = (
    "events",
    "leases",
    "masterleases",
    "ranges",
    "ipaddresses",
    "servicecidrs",
    "flowschemas",
)
CONTROL_PLANE_RESOURCES += (
    "peerserverleases",
    "prioritylevelconfigurations",
    "apiregistration.k8s.io",
    "endpointslices",
    "services/endpoints",
)


QUIET_SECONDS = 3.0
"""Seconds without a write."""


def stored_revisions(cluster: ControlPlane) -> dict[str, tuple[str, str]]:
    """Return the keys of all objects in etcd with their create and modify revisions."""
    found = cluster.revisions()
    ours = tuple(f"/registry/{name}/" for name in CONTROL_PLANE_RESOURCES)
    return {key: revisions for key, revisions in found.items() if not key.startswith(ours)}


def wait_until_settled(cluster: ControlPlane) -> None:
    """Wait until the controller manager has created service accounts and aggregated roles."""
    known: dict[str, tuple[str, str]] = {}
    deadline, since = time.monotonic() + 180, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        assert time.monotonic() < deadline, "there is always something written"
        found = stored_revisions(cluster)
        spaces = {key.rpartition("/")[2] for key in found if key.startswith("/registry/namespaces/")}
        lacking = [space for space in spaces if f"/registry/serviceaccounts/{space}/default" not in found]
        if found != known or lacking:
            known, since = found, time.monotonic()
        time.sleep(0.2)


def is_crewyards(key: str) -> bool:
    """Return whether `make up` may write a key: by its name, or in one of the two namespaces."""
    parts = key.split("/")
    whole = parts[-1].startswith("crewyard-") or parts[-1].endswith(".crewyard.dev") or parts[-1] == "crews"
    return whole or parts[-2] in ("crews", "crewyard-system")


def test_up_needs_confirmation_and_down_removes_all(user):
    """Slow: builds an image and installs it on a control plane of its own."""
    before = stored_revisions(user.cluster)

    for word in ({}, {"CONFIRM": "production"}):
        asked = user.make("up", **word)
        assert asked.returncode == 2
        assert "context  test" in asked.stderr and "crewyard-controller" in asked.stderr
        assert "make up CREWYARD_CLUSTER=current CONFIRM=test" in asked.stderr
    assert stored_revisions(user.cluster) == before

    user.make_confirmed("up")
    made = stored_revisions(user.cluster)
    assert [thing for thing in before if made.get(thing) != before[thing]] == []
    assert [thing for thing in made if thing not in before and not is_crewyards(thing)] == []
    named = {key.split("/")[2] for key in made if key.endswith("/crewyard-api")}
    assert named >= {"deployments", "clusterroles", "roles", "services"}

    status = user.make("status")
    assert "context  test" in status.stdout and "crewyard-api" in status.stdout
    exports = user.make("env").stdout
    assert "CREWYARD_API_KEY=crw_" in exports and f"KUBECONFIG={user.state}/current/kubeconfig" in exports
    refused = user.make("fit test")
    assert refused.returncode == 2 and "make demo, make e2e" in refused.stderr
    assert user.make("fit e2e").returncode == user.make("fit demo").returncode == 0

    project = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "spec": {}}
    project["metadata"] = {"name": "research", "namespace": "crews"}
    user.cluster.kubectl("create", "-f", "-", stdin=json.dumps(project))
    key = "/registry/secrets/crewyard-system/crewyard-admin-key"

    unasked = user.make("down")
    assert unasked.returncode == 2 and "crewyard-data" in unasked.stderr
    assert stored_revisions(user.cluster)[key] == made[key]
    user.make_confirmed("down")
    kept = stored_revisions(user.cluster)
    assert key in kept and "/registry/persistentvolumeclaims/crewyard-system/crewyard-data" in kept
    assert "/registry/crewyard.dev/projects/crews/research" in kept
    assert not [
        one
        for one in kept
        if one.split("/")[2] in ("deployments", "roles", "clusterroles") and one not in before
    ]

    user.make_confirmed("up")
    assert stored_revisions(user.cluster)[key] == made[key]
    user.make_confirmed("down --purge")
    after = stored_revisions(user.cluster)
    assert after == before
    assert not (user.state / "current").exists()


def test_foreign_objects_are_left_alone(user):
    """Slow: starts a control plane of its own."""
    cluster = user.cluster
    cluster.kubectl("create", "namespace", "crews")
    before = stored_revisions(cluster)
    assert "namespaces crews exist already" in user.make("up").stderr
    user.make_confirmed("up")
    assert stored_revisions(cluster)["/registry/namespaces/crews"] == before["/registry/namespaces/crews"]
    user.make_confirmed("down --purge")
    assert stored_revisions(cluster)["/registry/namespaces/crews"] == before["/registry/namespaces/crews"]

    cluster.kubectl("create", "clusterrole", "crewyard-api", "--verb=get", "--resource=pods")
    wait_until_settled(cluster)
    there = stored_revisions(cluster)
    refused = user.make("up", CONFIRM="test")
    assert refused.returncode == 1 and "ClusterRole crewyard-api" in refused.stderr
    assert stored_revisions(cluster) == there
    cluster.kubectl("delete", "clusterrole/crewyard-api", "namespace/crews")


def test_another_context_is_refused(user, tmp_path):
    user.make_confirmed("up")
    other = tmp_path / "elsewhere"
    text = user.cluster.kubeconfig.read_text().replace("127.0.0.1:", "localhost:")
    other.write_text(text)
    refused = user.make("up", CONFIRM="test", KUBECONFIG=str(other))
    assert refused.returncode == 1 and "Switch back" in refused.stderr


def test_context_of_another_cluster_is_refused(user):
    """Slow: starts two control planes."""
    user.make_confirmed("up")
    namespace = json.loads(user.cluster.kubectl("get", "namespace", "kube-system", "-o", "json"))
    note = user.state / "current" / "cluster-uid"
    assert note.read_text().strip() == namespace["metadata"]["uid"]
    wait_until_settled(user.cluster)
    before = stored_revisions(user.cluster)
    # As if the user had confirmed while the address led to another cluster.
    note.write_text("5c1b6e1e-0000-4000-8000-000000000000\n")
    for command in ("up", "deploy", "down", "down --purge", "status"):
        refused = user.make(command, CONFIRM="test")
        assert refused.returncode == 1 and "leads to another cluster" in refused.stderr, command
    assert stored_revisions(user.cluster) == before
    note.write_text(namespace["metadata"]["uid"])
