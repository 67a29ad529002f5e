"""The kind cluster against recorded programs: calls of Docker, kind and kubectl, and their order."""

import io
import json
from pathlib import Path

import pytest

from dev import state
from dev.current import image
from dev.errors import DevClusterError
from dev.kind import configuration, docker, engine, installation, nodes
from dev.kind.kind import KindCluster
from dev.progress import StepProgress
from dev.settings import Settings
from tests.testbed.stub_programs import StubPrograms, StubResponse

DIGEST = f"sha256:{'c' * 64}"
WORKER = "crewyard-worker"
COREFILE = (
    ".:53 {\n    errors\n    forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }\n    reload\n}\n"
)
NETWORK = [
    {"IPAM": {"Config": [{"Subnet": "fc00::/64"}, {"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]}}
]
CONTAINER = {"NetworkSettings": {"Networks": {"kind": {"IPAddress": "172.18.0.3"}}}}
READY = {
    "items": [
        {
            "metadata": {"name": "crewyard-api", "generation": 1},
            "spec": {"replicas": 1, "template": {}},
            "status": {"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1},
        }
    ]
}


def container(name: str, mark: str) -> list[StubResponse]:
    running, stopped = ({**CONTAINER, "State": {"Running": on}} for on in (True, False))
    words = ("container", "inspect", name)
    return [
        StubResponse(words, json.dumps([running]), when=f"{mark} runs"),
        StubResponse(words, json.dumps([stopped]), when=f"{mark} is there"),
        StubResponse(words, stderr=f"Error: No such container: {name}", code=1),
        StubResponse(("start", name), set=f"{mark} runs"),
        StubResponse(("stop", "--time=20", name), unset=f"{mark} runs"),
    ]


def volume(owner: Path) -> list[StubResponse]:
    words = ("volume", "inspect", configuration.VOLUME)
    return [
        StubResponse(words, json.dumps([{"Labels": {configuration.OWNER: str(owner)}}]), when="owned"),
        StubResponse(words, json.dumps([{"Labels": None}]), when="another's volume"),
        StubResponse(words, "[]\n", stderr="Error response from daemon: get x: no such volume", code=1),
        StubResponse(("volume", "create"), set="owned"),
        StubResponse(("volume", "rm"), unset="owned"),
    ]


def pushed() -> list[StubResponse]:
    names = ("crewyard/service", "library/python", "crewyard/kaniko")
    return [
        StubResponse(
            (*("image", "inspect"),), json.dumps([f"localhost:5001/{name}@{DIGEST}" for name in names])
        )
    ]


@pytest.fixture
def machine(tmp_path, monkeypatch) -> StubPrograms:
    recorded = StubPrograms(tmp_path / "recorded")
    registry = ("run", "--detach", "--restart=unless-stopped", "--name=crewyard-registry")
    recorded.add(
        "docker",
        StubResponse(("info",), "linux 28.1.0\n"),
        StubResponse(("run", "--rm", "--privileged")),
        StubResponse(registry, "id\n", set="registry runs"),
        *container(configuration.NODE, "node"),
        *container(configuration.REGISTRY_CONTAINER, "registry"),
        StubResponse(("network", "inspect", "kind"), json.dumps(NETWORK)),
        StubResponse(("ps",), f"{WORKER}\n{configuration.NODE}\n", when="two nodes"),
        StubResponse(("ps",), f"{configuration.NODE}\n"),
        *container(WORKER, "worker"),
        *volume(tmp_path / "state"),
        *pushed(),
        *(StubResponse((word,)) for word in ("exec", "pull", "tag", "push", "build", "rm", "manifest")),
    )
    recorded.add(
        "kind",
        StubResponse(("version",), "kind v0.33.0 go1.26.8 linux/amd64\n"),
        # Cut off in the middle: the node is there, the kubeconfig that comes last is not.
        StubResponse(("create", "cluster"), stderr="interrupted", code=130, when="cut", set="node runs"),
        StubResponse(("create", "cluster"), set="node runs"),
        StubResponse(("get", "kubeconfig"), "a kubeconfig"),
        StubResponse(("delete", "cluster"), unset="node runs"),
    )
    dns = {"data": {"Corefile": COREFILE}}
    named = {"data": {"Corefile": configuration.with_hosts(COREFILE, "172.18.0.1", "172.18.0.3")}}
    raw = ("get", "--raw")
    coredns = (*raw, "/api/v1/namespaces/kube-system/configmaps/coredns")
    recorded.add(
        "kubectl",
        StubResponse(coredns, json.dumps(named), when="named", anywhere=True),
        StubResponse(coredns, json.dumps(dns), anywhere=True),
        StubResponse(("rollout", "restart"), set="named", anywhere=True),
        StubResponse(("rollout", "status"), anywhere=True),
        StubResponse(
            (*raw, "/apis/apps/v1/namespaces/crewyard-system/deployments"), json.dumps(READY), anywhere=True
        ),
        StubResponse((*raw, "/api/v1/namespaces/crewyard-system/configmaps"), '{"items": []}', anywhere=True),
        StubResponse(
            (*raw, "/readyz"), stderr="EOF", code=1, unless="answered", set="answered", anywhere=True
        ),
        StubResponse((*raw, "/readyz"), "ok", when="answered", set="ready", anywhere=True),
        StubResponse((*raw, "/api/v1/namespaces/crews/resourcequotas"), '{"items": []}', anywhere=True),
        StubResponse(raw, stderr="Error from server (NotFound): not there", code=1, anywhere=True),
        StubResponse(("create", "--raw"), "{}", anywhere=True),
        StubResponse(("apply",), "configured\n", anywhere=True),
        StubResponse(("patch",), anywhere=True),
    )
    monkeypatch.setenv("PATH", f"{recorded.bin}:/usr/bin:/bin")
    # This machine may run an embedded node.
    monkeypatch.setattr(state, "other_state_directory", lambda *_: None)
    return recorded


@pytest.fixture
def kind_cluster(tmp_path, machine) -> KindCluster:
    return KindCluster(Settings(tmp_path / "state"), {"PATH": "/usr/bin"}, StepProgress(io.StringIO()))


def first(calls: list[list[str]], *words: str) -> int:
    return next(position for position, call in enumerate(calls) if call[: len(words)] == list(words))


def test_up_creates_cluster_registry_names_and_images(kind_cluster, machine, tmp_path):
    kind_cluster.up()
    docker = machine.calls("docker")
    registry = docker[first(docker, "run", "--detach")]
    assert "--publish=127.0.0.1:5001:5000" in registry and "--publish=172.18.0.1:5000:5000" in registry
    assert docker.index(registry) < first(docker, "exec", "-i", configuration.NODE)
    assert [call[1] for call in docker if call[0] == "push" and "service" in call[1]] != []
    (created,) = (call for call in machine.calls("kind") if call[0] == "create")
    assert created[2] == f"--config={tmp_path}/state/kind/config/cluster.json"
    made = json.loads((tmp_path / "state/kind/config/deploy/kustomization.yaml").read_text())
    literals = made["configMapGenerator"][0]["literals"]
    registry_name = "registry.crewyard.internal:5000"
    assert f"CREWYARD_SERVICE_IMAGE={registry_name}/crewyard/service@{DIGEST}" in literals
    assert f"CREWYARD_KANIKO_IMAGE={registry_name}/crewyard/kaniko@{DIGEST}" in literals
    assert made["images"][0]["newName"] == f"{registry_name}/crewyard/service"
    assert kind_cluster.problems() == []
    assert kind_cluster.env()["CREWYARD_HOST_ADDRESS"] == "172.18.0.1"
    assert (tmp_path / "state/cluster").read_text() == "kind\n"


def test_a_second_up_creates_nothing(kind_cluster, machine):
    kind_cluster.up()
    before = len(machine.calls("docker"))
    kind_cluster.up()
    again = machine.calls("docker")[before:]
    assert not [call for call in again if call[0] == "build" or call[:2] == ["run", "--detach"]]
    assert len([call for call in machine.calls("kubectl") if "restart" in call]) == 1


def test_an_image_that_the_registry_lost_is_built_again(kind_cluster, machine):
    kind_cluster.up()
    before = len(machine.calls("docker"))
    lost = StubResponse(("manifest", "inspect"), stderr="no such manifest", code=1)
    machine.add("docker", lost, *machine.responses("docker"))
    kind_cluster.up()
    again = machine.calls("docker")[before:]
    asked = ["manifest", "inspect", "--insecure", f"localhost:5001/crewyard/service@{DIGEST}"]
    assert again.index(asked) < first(again, "build") < first(again, "push")


def test_down_stops_and_up_starts_again(kind_cluster, machine):
    kind_cluster.up()
    machine.mark("node is there")
    machine.mark("registry is there")
    kind_cluster.down(purge=False)
    assert len(kind_cluster.problems()) == 2 and "stopped" in kind_cluster.status()
    kind_cluster.up()
    assert ["start", configuration.NODE] in machine.calls("docker")
    assert ["start", configuration.REGISTRY_CONTAINER] in machine.calls("docker")
    assert len([call for call in machine.calls("kind") if call[0] == "create"]) == 1


def test_a_worker_uses_the_registry_and_stops_and_starts_with_the_cluster(kind_cluster, machine):
    machine.mark("two nodes")
    machine.mark("worker runs")
    kind_cluster.up()
    for name in (configuration.NODE, WORKER):
        assert first(machine.calls("docker"), "exec", "-i", name, "cp") >= 0
    assert kind_cluster.problems() == [] and WORKER in kind_cluster.status()
    machine.mark("worker is there")
    kind_cluster.down(purge=False)
    assert ["stop", "--time=20", WORKER] in machine.calls("docker")
    assert f"container {WORKER} is not running" in kind_cluster.problems()
    machine.mark("node is there")
    machine.mark("registry is there")
    kind_cluster.up()
    assert ["start", WORKER] in machine.calls("docker")


def test_up_waits_for_the_apiserver_of_started_nodes(kind_cluster, machine, monkeypatch):
    monkeypatch.setattr(nodes, "_PAUSE_SECONDS", 0)
    kind_cluster.up()
    calls = machine.calls("kubectl")
    ready = [position for position, call in enumerate(calls) if call[-1] == "/readyz"]
    assert len(ready) == 2 and ready[-1] < next(i for i, call in enumerate(calls) if "coredns" in call[-1])
    machine.add("kubectl", StubResponse((), stderr="EOF", code=1))
    monkeypatch.setattr(nodes, "_READY_TIMEOUT_SECONDS", 0)
    with pytest.raises(DevClusterError, match=r"kube-apiserver of the kind cluster is not ready: .*EOF"):
        kind_cluster.up()


def test_workers_and_image_of_a_new_cluster_are_settings(tmp_path, machine):
    environment = {"PATH": "/usr/bin", "CREWYARD_KIND_WORKERS": "2", "CREWYARD_KIND_IMAGE": "node:own"}
    KindCluster(Settings(tmp_path / "state"), environment, StepProgress(io.StringIO())).up()
    made = json.loads((tmp_path / "state/kind/config/cluster.json").read_text())
    assert [node["role"] for node in made["nodes"]] == ["control-plane", "worker", "worker"]
    assert {node["image"] for node in made["nodes"]} == {"node:own"}


@pytest.mark.parametrize("text", ["-1", "9", "two", "٢"])
def test_a_wrong_number_of_workers_is_rejected(text):
    with pytest.raises(DevClusterError, match=r"CREWYARD_KIND_WORKERS is .* from 0 to 8"):
        configuration.workers({"CREWYARD_KIND_WORKERS": text})


def test_the_offered_pythons_are_a_setting():
    assert installation.offered_pythons({}) == ("3.11", "3.12", "3.13", "3.14")
    assert installation.offered_pythons({"CREWYARD_PYTHONS": "3.13,3.12"}) == ("3.11", "3.13", "3.12")
    with pytest.raises(DevClusterError, match=r"CREWYARD_PYTHONS has 2\.7; kind offers 3\.11, 3\.12"):
        installation.offered_pythons({"CREWYARD_PYTHONS": "2.7"})


def test_an_image_that_docker_has_needs_no_registry(kind_cluster, machine):
    refused = "Error response from daemon: Get https://registry-1.docker.io/v2/: no route to host"
    unreachable = StubResponse(("pull",), stderr=refused, code=1)
    machine.add("docker", unreachable, *machine.responses("docker"))
    kind_cluster.up()
    machine.add("docker", unreachable, StubResponse(("image", "inspect"), stderr="No such image", code=1))
    with pytest.raises(DevClusterError, match="no route to host"):
        image.pull("python:3.11-slim")


def test_purge_removes_everything(kind_cluster, machine, tmp_path):
    kind_cluster.up()
    kind_cluster.down(purge=True)
    assert ["delete", "cluster", "--name=crewyard"] in machine.calls("kind")
    assert ["rm", "--force", "--volumes", configuration.REGISTRY_CONTAINER] in machine.calls("docker")
    assert ["volume", "rm", configuration.VOLUME] in machine.calls("docker")
    assert not (tmp_path / "state/kind").exists() and not (tmp_path / "state/cluster").exists()


def changes(machine: StubPrograms) -> list[list[str]]:
    """Return the calls of Docker and kind that change something."""
    asked = ("info", "container", "network", "volume", "image", "manifest", "version", "ps")
    trial = ["run", "--rm"]
    calls = [*machine.calls("docker"), *machine.calls("kind")]
    return [call for call in calls if call[0] not in asked and call[:2] != trial]


def test_another_state_directory_cannot_change_the_cluster(kind_cluster, machine, tmp_path):
    kind_cluster.up()
    before = changes(machine)
    other = KindCluster(Settings(tmp_path / "elsewhere"), {"PATH": "/usr/bin"}, StepProgress(io.StringIO()))
    for act in (other.up, other.deploy, lambda: other.down(purge=True), other.status):
        with pytest.raises(DevClusterError, match=f"belongs to the state directory {tmp_path}/state, not to"):
            act()
    assert "belongs to" in other.problems()[0]
    assert changes(machine) == before
    kind_cluster.down(purge=True)


def test_an_embedded_node_on_the_same_port_is_refused(kind_cluster, machine, monkeypatch):
    monkeypatch.setattr(state, "other_state_directory", lambda *_: Path("/elsewhere"))
    with pytest.raises(DevClusterError, match="CREWYARD_STATE=/elsewhere make down"):
        kind_cluster.up()
    assert changes(machine) == []


def test_a_cluster_without_a_known_owner_stays_unchanged(kind_cluster, machine):
    machine.mark("node is there")
    with pytest.raises(DevClusterError, match="container crewyard-control-plane without a known owner"):
        kind_cluster.up()
    assert changes(machine) == []


def test_a_cluster_without_an_owner_label_is_adopted(kind_cluster, machine, tmp_path):
    machine.mark("node is there")
    (tmp_path / "state/kind").mkdir(parents=True)
    (tmp_path / "state/kind/kubeconfig").touch()
    kind_cluster.up()
    label = f"--label={configuration.OWNER}={tmp_path}/state"
    assert ["volume", "create", label, configuration.VOLUME] in machine.calls("docker")
    assert ["start", configuration.NODE] in machine.calls("docker")


def test_an_incomplete_cluster_reports_how_to_start_again(kind_cluster, machine):
    machine.mark("cut")
    with pytest.raises(DevClusterError, match="kind failed with exit code 130"):
        kind_cluster.up()
    for _ in range(2):
        with pytest.raises(DevClusterError, match=r"is incomplete.*make down PURGE=1 CREWYARD_CLUSTER=kind"):
            kind_cluster.up()
    kind_cluster.down(purge=True)
    assert ["delete", "cluster", "--name=crewyard"] in machine.calls("kind")


def test_an_unknown_docker_state_does_not_count_as_absent(kind_cluster, machine):
    kind_cluster.up()
    denied = "permission denied while trying to connect to the Docker daemon socket"
    machine.add("docker", StubResponse(("info",), "linux 28.1.0\n"), StubResponse((), stderr=denied, code=1))
    for act in (
        kind_cluster.up,
        lambda: kind_cluster.down(purge=False),
        lambda: kind_cluster.down(purge=True),
        kind_cluster.status,
    ):
        with pytest.raises(DevClusterError, match="permission denied"):
            act()
    assert denied in kind_cluster.problems()[0]
    assert "CREWYARD_HOST_ADDRESS" not in kind_cluster.env() and "CREWYARD_URL" in kind_cluster.env()


@pytest.mark.parametrize(
    ("message", "absent"),
    [
        ("Error response from daemon: No such container: crewyard-registry", True),
        ("Error: No such object: crewyard-registry", True),
        ("Error response from daemon: network kind not found", True),
        ("Error response from daemon: get crewyard-registry: no such volume", True),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", False),
        ("error during connect: lookup docker: no such host", False),
        ("", False),
    ],
)
def test_not_found_messages_of_engines(machine, message, absent):
    machine.add("docker", StubResponse(("container", "inspect"), stderr=message, code=1))
    if absent:
        assert docker.inspect("container", "crewyard-registry") is None
    else:
        with pytest.raises(DevClusterError):
            docker.inspect("container", "crewyard-registry")


def test_an_engine_without_privileged_containers_is_rejected(kind_cluster, machine):
    refused = StubResponse(
        ("run", "--rm", "--privileged"), stderr="docker: Error response: operation not permitted", code=125
    )
    machine.add("docker", StubResponse(("info",), "linux 28.1.0\n"), refused)
    assert engine.problem() == (
        "the Docker engine cannot run privileged containers: docker: Error response: operation not permitted"
    )
    with pytest.raises(DevClusterError, match="CREWYARD_CLUSTER=embedded"):
        kind_cluster.up()
    assert machine.calls("kind") == []


def test_no_engine_and_no_docker(machine, monkeypatch):
    machine.add("docker", StubResponse(("info",), stderr="Cannot connect to the Docker daemon", code=1))
    assert "does not respond: Cannot connect" in (engine.problem() or "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert engine.problem() == "the program `docker` is not installed"


def test_names_are_written_once_and_updated_with_the_addresses():
    corefile = configuration.with_hosts(COREFILE, "172.18.0.1", "172.18.0.3")
    assert configuration.with_hosts(corefile, "172.18.0.1", "172.18.0.3") == corefile
    assert "172.18.0.3 registry.crewyard.internal" in corefile
    assert corefile.index("fallthrough") < corefile.index("forward .")
    moved = configuration.with_hosts(corefile, "172.18.0.1", "172.18.0.9")
    assert "172.18.0.3" not in moved and moved.count("hosts {") == 1
    with pytest.raises(ValueError):
        configuration.with_hosts(".:53 {\n}\n", "172.18.0.1", "172.18.0.3")


@pytest.mark.parametrize(
    ("config", "address"),
    [
        ([{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}], "172.18.0.1"),
        ([{"Subnet": "fc00::/64", "Gateway": "fc00::1"}, {"Subnet": "172.19.0.0/16"}], "172.19.0.1"),
        ([{"Subnet": "fc00::/64"}], None),
        (None, None),
    ],
)
def test_the_gateway_is_an_ipv4_address(config, address):
    assert configuration.gateway([{"IPAM": {"Config": config}}]) == address


def test_pods_and_this_machine_use_different_registry_names():
    assert (
        installation.cluster_reference(f"localhost:5001/a/b@{DIGEST}")
        == f"registry.crewyard.internal:5000/a/b@{DIGEST}"
    )


def test_the_pinned_versions_are_the_modules():
    module = (Path(__file__).parents[3] / "dev/tools/kind/go.mod").read_text()
    assert f"sigs.k8s.io/kind v{configuration.VERSION}\n" in module


def test_the_executor_is_that_of_the_base():
    base = (Path(__file__).parents[3] / "manifests/base/kustomization.yaml").read_text()
    assert f"CREWYARD_KANIKO_IMAGE={installation.KANIKO[2]}\n" in base
    assert installation.KANIKO[2].endswith(f":{installation.KANIKO[1]}")
