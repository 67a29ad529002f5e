"""Additions to the overlay, completion of a rollout, and pods that never become ready."""

import io
import json
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from crds import api_keys
from dev.cluster import credentials, install, rollout
from dev.cluster.rollout import current_pods, failed_pods, pending_state
from dev.errors import DevClusterError
from dev.images import kaniko, service_image
from dev.images.images import ImageReferences
from dev.progress import StepProgress
from dev.settings import REGISTRY, Settings

IMAGES = ImageReferences(pause="p@sha256:1", kaniko="k@sha256:2", base="b@sha256:3")
IMAGE = f"{REGISTRY}/crewyard/service@sha256:{'a' * 64}"


def test_the_kustomization_pins_image_configuration_and_volume() -> None:
    values = install.config_values(IMAGE, IMAGES, {"3.11": "b@sha256:3"})
    made = install.kustomization("../../overlay", ["../../replicas"], IMAGE, values, Path("/srv/volume"))
    assert made["resources"] == ["../../overlay", "registry-push.json"]
    assert made["components"] == ["../../replicas"]
    assert made["images"] == [
        {
            "name": "crewyard/service",
            "newName": f"{REGISTRY}/crewyard/service",
            "digest": f"sha256:{'a' * 64}",
        }
    ]
    (generator,) = made["configMapGenerator"]
    assert f"CREWYARD_SERVICE_IMAGE={IMAGE}" in generator["literals"]
    assert generator["behavior"] == "merge"
    assert json.loads(made["patches"][0]["patch"])[0]["value"] == "/srv/volume"


def test_base_images_are_json_with_the_default_first() -> None:
    bases = {"3.11": "b@sha256:3", "3.13": "b@sha256:4"}
    text = install.config_values(IMAGE, IMAGES, bases)["CREWYARD_BASE_IMAGES"]
    assert list(json.loads(text).items()) == list(bases.items())


def test_unreferenced_config_maps_are_unused() -> None:
    template = {"containers": [{"envFrom": [{"configMapRef": {"name": "crewyard-config-new"}}]}]}
    names = ["crewyard-config-old", "crewyard-config-new", "crewyard-config-ne", "kube-root-ca.crt"]
    deployments = [{"spec": {"template": template}}]
    assert install.unused_config_maps(names, deployments) == ["crewyard-config-old", "crewyard-config-ne"]


def deployment(**status: int) -> dict[str, Any]:
    return {"metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": status}


@pytest.mark.parametrize(
    ("status", "done"),
    [
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}, True),
        ({"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}, False),
        ({"observedGeneration": 2, "updatedReplicas": 0, "replicas": 1, "availableReplicas": 1}, False),
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 2, "availableReplicas": 1}, False),
        ({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1}, False),
        ({}, False),
    ],
)
def test_a_rollout_is_done_when_only_new_pods_run(status: dict[str, int], done: bool) -> None:
    assert (pending_state(deployment(**status)) is None) is done


def pod(reason: str, restarts: int, **metadata: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": "because"}}
    last = {"terminated": {"reason": "Error", "exitCode": 1}}
    container = {"state": state, "restartCount": restarts, "lastState": last}
    return {"metadata": {"name": "api-1", **metadata}, "status": {"containerStatuses": [container]}}


@pytest.mark.parametrize(
    ("pods", "lost"),
    [
        ([pod("CrashLoopBackOff", 2)], True),
        ([pod("CrashLoopBackOff", 1)], False),
        ([pod("ContainerCreating", 0)], False),
        ([pod("ImagePullBackOff", 0)], True),
        ([pod("ImagePullBackOff", 0, deletionTimestamp="2026-01-01T00:00:00Z")], False),
        ([{"metadata": {"name": "new"}}], False),
    ],
)
def test_pods_that_will_not_become_ready(pods: list[dict[str, Any]], lost: bool) -> None:
    assert bool(failed_pods(pods)) is lost


def owned(name: str, owner: str, revision: str = "") -> dict[str, Any]:
    annotations = {"deployment.kubernetes.io/revision": revision} if revision else {}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "annotations": annotations,
            "ownerReferences": [{"uid": owner}],
        }
    }


def test_pods_of_an_older_revision_are_ignored() -> None:
    newest = deployment(observedGeneration=2)
    newest["metadata"] |= {"uid": "api", "annotations": {"deployment.kubernetes.io/revision": "2"}}
    sets = [owned("old", "api", "1"), owned("new", "api", "2"), owned("other", "elsewhere", "2")]
    pods = [owned("old-pod", "old"), owned("new-pod", "new"), owned("other-pod", "other")]
    assert [pod["metadata"]["name"] for pod in current_pods([newest], sets, pods)] == ["new-pod"]
    newest["metadata"]["generation"] = 3
    assert current_pods([newest], sets, pods) == []


def test_the_admin_key_is_generated_once_and_private(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    text, fresh = credentials.admin_key(settings)
    assert fresh and api_keys.key_id_of(text)
    assert settings.admin_key.stat().st_mode & 0o777 == 0o600
    assert credentials.admin_key(settings) == (text, False)


def test_the_cluster_gets_only_the_hash() -> None:
    key = api_keys.generate()
    record = credentials.key_record(key.text)
    assert key.text not in record
    (entry,) = json.loads(record)
    assert entry["id"] == key.key_id and entry["scopes"] == ["admin"] and entry["projects"] is None
    assert api_keys.matches(key.text, entry["hash"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "Dockerfile",
        "requirements/service.txt",
        *(f"{name}/__init__.py" for name in service_image.PACKAGES),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "api" / "__pycache__").mkdir()
    (tmp_path / "api" / "__pycache__" / "x.cpython-311.pyc").write_text("x")
    (tmp_path / "secret.txt").write_text("x")
    return tmp_path


def test_the_context_contains_only_the_services_files(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("context")
    service_image.stage(target, root)
    staged = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert staged == {"Dockerfile", "requirements/service.txt"} | {
        f"{name}/__init__.py" for name in service_image.PACKAGES
    }


def test_the_images_key_follows_content_names_and_base(root: Path) -> None:
    before = service_image.key(IMAGES, root)
    assert service_image.key(IMAGES, root) == before
    assert service_image.key(ImageReferences("p", "k", "another"), root) != before
    (root / "secret.txt").write_text("changed")
    (root / "api" / "__pycache__" / "y.pyc").write_text("x")
    assert service_image.key(IMAGES, root) == before
    (root / "api" / "__init__.py").write_text("changed")
    assert service_image.key(IMAGES, root) != before


def test_the_build_pod_has_no_credential_and_few_capabilities() -> None:
    spec = kaniko.pod(
        "x", Path("/srv/context"), Path("/srv/docker"), "crewyard/service", "b@sha256:3", "k@sha256:2"
    )["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert container["volumeMounts"][0]["readOnly"] is True
    assert "--build-arg=BASE_IMAGE=b@sha256:3" in container["args"]


class FakeKubeApi:
    """Kubernetes API of `dev`, backed by a dictionary of lists."""

    def __init__(self, lists: dict[str, list[dict[str, Any]]], rival: bool = False) -> None:
        self.lists, self.rival, self.deleted = lists, rival, list[str]()

    def call(self, method: str, path: str, body: object = None) -> Any:
        if method == "DELETE":
            self.deleted.append(path.rpartition("/")[2])
        return {"items": self.lists.get(path.rpartition("/")[2], [])}

    def get(self, path: str) -> Any:
        return None

    def create(self, path: str, body: object) -> bool:
        return not self.rival

    def text(self, path: str) -> str:
        return ""


def test_on_a_shared_cluster_only_labelled_config_maps_are_deleted() -> None:
    mark = {"crewyard.dev/installed-by": "make-up"}
    maps = [
        {"metadata": {"name": "crewyard-config-old", "labels": {**mark, "app": "x"}}},
        {"metadata": {"name": "crewyard-config-theirs", "labels": {"app": "x"}}},
        {"metadata": {"name": "crewyard-config-plain"}},
    ]
    cluster = FakeKubeApi({"configmaps": maps})
    install.delete_unused_config_maps(cluster, mark)
    assert cluster.deleted == ["crewyard-config-old"]
    install.delete_unused_config_maps(cluster)
    assert len(cluster.deleted) == 4


@pytest.mark.parametrize("rival", [False, True])
def test_a_key_that_lost_a_race_is_reported_as_not_valid(rival: bool, tmp_path: Path, capsys: Any) -> None:
    credentials.ensure(Settings(tmp_path), FakeKubeApi({}, rival), StepProgress())
    output = capsys.readouterr()
    assert ("is not valid" in output.out + output.err) is rival


class ReadyHandler(BaseHTTPRequestHandler):
    """Answers 503 once, then 200."""

    requests = 0

    def do_GET(self) -> None:
        ReadyHandler.requests += 1
        self.send_response(503 if ReadyHandler.requests == 1 else 200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def test_the_end_of_a_rollout_waits_for_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadyHandler, "requests", 0)
    server = HTTPServer(("127.0.0.1", 0), ReadyHandler, bind_and_activate=False)
    server.server_bind()
    refusals = []

    def serve_after_a_refusal(seconds: float) -> None:
        refusals.append(seconds)
        if len(refusals) == 1:
            server.server_activate()
            Thread(target=server.serve_forever, daemon=True).start()

    monkeypatch.setattr(rollout.time, "sleep", serve_after_a_refusal)
    rollout.wait_reachable(StepProgress(io.StringIO()), f"http://127.0.0.1:{server.server_address[1]}")
    assert (len(refusals), ReadyHandler.requests) == (2, 2)
    server.shutdown()
    server.server_close()


def test_an_address_that_never_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "_NODE_PORT_TIMEOUT_SECONDS", 0)
    with (
        socket.socket() as bound,
        pytest.raises(DevClusterError, match=r"does not answer, and its pods are ready: .*refused"),
    ):
        bound.bind(("127.0.0.1", 0))
        rollout.wait_reachable(StepProgress(io.StringIO()), f"http://127.0.0.1:{bound.getsockname()[1]}")
