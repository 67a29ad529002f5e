"""Listing, refusal and removal on a shared cluster."""

import io
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from dev.cluster import egress
from dev.cluster.kube_client import KubeApiError
from dev.cluster.kubectl import KubectlApi
from dev.current import context, identity, image, manifests, objects, options, port_forward
from dev.errors import DevClusterError, OperationRefused
from dev.process import program
from dev.progress import StepProgress
from dev.settings import Settings
from tests.testbed.stub_programs import StubPrograms, StubResponse

IMAGE = f"registry.example.com/team/crewyard/service@sha256:{'a' * 64}"
CLUSTER = context.ClusterContext("prod-eu", "https://k8s.example.com", "v1.35.2", "2b0c")
MANIFESTS = Path(__file__).parents[3] / "manifests" / "base"
# Answers at the forwarded port. If the file `lost` exists, it exits at the next request, as kubectl does.
KUBECTL = """#!{python} -IS
import http.server, pathlib, sys
lost = pathlib.Path({lost!r})
class Forward(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if lost.exists():
            lost.unlink()
            sys.exit("error: lost connection to pod")
        self.send_response(200)
        self.end_headers()
port = int(sys.argv[-1].partition(":")[0])
http.server.HTTPServer(("127.0.0.1", port), Forward).serve_forever()
"""


def item(kind: str, name: str, namespace: str = "", ours: bool = True) -> dict[str, Any]:
    labels = dict(manifests.INSTALLED_BY_LABEL) if ours else {}
    metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"CREWYARD_REGISTRY": "https://registry.example.com"},
        {"CREWYARD_REGISTRY": "registry.example.com", "CREWYARD_IMAGE": "crewyard:latest"},
        {"CREWYARD_REGISTRY": "registry.example.com", "CREWYARD_WAIT": "perhaps"},
        {"CREWYARD_REGISTRY": "registry.example.com", "CREWYARD_REGISTRY_CONFIG": "/nowhere/config.json"},
    ],
)
def test_wrong_options_name_their_variable(environment):
    with pytest.raises(DevClusterError, match="CREWYARD_"):
        options.from_environment(environment)


def test_a_registrys_credentials_become_secrets_and_pull_secrets(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"auths": {"registry.example.com": {"auth": "eDp5"}}}')
    chosen = options.from_environment(
        {"CREWYARD_REGISTRY": "registry.example.com/team/", "CREWYARD_REGISTRY_CONFIG": str(file)}
    )
    assert chosen.registry == "registry.example.com/team"
    places = [
        (secret["metadata"]["namespace"], secret["metadata"]["name"])
        for secret in manifests.pull_secrets(chosen)
    ]
    assert places == [("crewyard-system", "crewyard-registry"), ("crews", "crewyard-registry")]
    assert options.config_values(chosen, IMAGE)["CREWYARD_REGISTRY_SECRET"] == "crewyard-registry"
    (patch,) = manifests.kustomization("../base", chosen, IMAGE)["patches"]
    assert json.loads(patch["patch"])[0]["value"] == [{"name": "crewyard-registry"}]
    file.write_text("{}")
    with pytest.raises(DevClusterError, match="auths"):
        options.from_environment({"CREWYARD_REGISTRY": "x", "CREWYARD_REGISTRY_CONFIG": str(file)})


def test_builds_reach_the_configured_private_networks():
    chosen = options.from_environment(
        {"CREWYARD_REGISTRY": "r", "CREWYARD_EGRESS": "10.1.2.0/24, 10.9.9.9/32"}
    )
    (way,) = manifests.egress_rules(chosen)
    assert [to["ipBlock"]["cidr"] for to in way["to"]] == ["10.1.2.0/24", "10.9.9.9/32"]
    assert manifests.kustomization("../base", chosen, IMAGE)["resources"] == [
        "../base",
        "network-policies.json",
    ]
    # Without one, an empty list takes back what an earlier installation allowed.
    closed = options.InstallOptions("r")
    assert manifests.kustomization("../base", closed, IMAGE)["resources"] == [
        "../base",
        "network-policies.json",
    ]
    assert egress.policy(manifests.egress_rules(closed))["spec"]["egress"] == []
    with pytest.raises(DevClusterError, match="CREWYARD_EGRESS"):
        options.from_environment({"CREWYARD_REGISTRY": "r", "CREWYARD_EGRESS": "10.1.2.3/24"})


def test_all_objects_are_labelled_and_pinned():
    chosen = options.InstallOptions("registry.example.com", storage_class="fast", host_address="192.0.2.7")
    made = manifests.kustomization("../base", chosen, IMAGE)
    assert made["labels"] == [{"pairs": manifests.INSTALLED_BY_LABEL, "includeSelectors": False}]
    assert made["images"][0]["digest"] == IMAGE.partition("@")[2]
    literals = made["configMapGenerator"][0]["literals"]
    (bases,) = [line.partition("=")[2] for line in literals if line.startswith("CREWYARD_BASE_IMAGES=")]
    assert json.loads(bases) == options.OFFICIAL_IMAGES
    only = options.config_values(options.InstallOptions("r", base_image="mirror.example.com/python:1"), IMAGE)
    assert json.loads(only["CREWYARD_BASE_IMAGES"]) == {"3.11": "mirror.example.com/python:1"}
    assert "CREWYARD_NET_ALLOW=192.0.2.7/32" in literals
    assert "fast" in made["patches"][0]["patch"]


@pytest.mark.parametrize(
    "foreign",
    [item("Deployment", "dns", "kube-system"), item("Node", "one"), item("Pod", "one", "crews")],
)
def test_nothing_beyond_the_two_namespaces_is_applied(foreign):
    objects.check_bounds([item("Deployment", "crewyard-api", "crewyard-system"), item("Namespace", "crews")])
    with pytest.raises(DevClusterError, match=foreign["metadata"]["name"]):
        objects.check_bounds([foreign])


def test_down_finds_all_kinds_of_the_base():
    kinds = set()
    for file in [*MANIFESTS.glob("*.yaml"), *MANIFESTS.parent.parent.glob("crds/*.yaml")]:
        kinds |= {line.split()[1] for line in file.read_text().splitlines() if line.startswith("kind: ")}
    assert kinds - {"Kustomization"} - set(objects.CLUSTER_KINDS) - set(objects.NAMESPACED_KINDS) == set()


def test_foreign_objects_are_recognised():
    live = [
        item("Namespace", "crews", ours=False),
        item("ClusterRole", "crewyard-api"),
        item("Role", "x", "crews"),
    ]
    assert objects.foreign_objects(live) == (["crews"], [])
    theirs = item("ClusterRole", "crewyard-api", ours=False)
    assert objects.foreign_objects([*live, theirs])[1] == [
        objects.ObjectRef("ClusterRole", "", "crewyard-api")
    ]


LIVE = [
    item("Namespace", "crews"),
    item("Secret", "crewyard-tokens", "crewyard-system"),
    item("PersistentVolumeClaim", "crewyard-data", "crewyard-system"),
    item("CustomResourceDefinition", "runs.crewyard.dev"),
    item("ClusterRole", "crewyard-api"),
    item("Deployment", "crewyard-api", "crewyard-system"),
    item("Deployment", "crewyard-controller", "crewyard-system"),
    item("NetworkPolicy", "crewyard-closed", "crews"),
    item("NetworkPolicy", "crewyard-api", "crewyard-system"),
    item("Role", "theirs", "crews", ours=False),
]


def test_down_keeps_data_keys_kinds_and_isolation():
    names = [str(one) for one in objects.deletion_order(LIVE, purge=False)]
    assert names == [
        "Deployment crewyard-system/crewyard-api",
        "Deployment crewyard-system/crewyard-controller",
        "NetworkPolicy crewyard-system/crewyard-api",
        "ClusterRole crewyard-api",
    ]


def test_purge_deletes_everything_and_the_crds_last():
    going = objects.deletion_order(LIVE, purge=True)
    assert len(going) == len(LIVE) - 1 and str(going[-1]) == "CustomResourceDefinition runs.crewyard.dev"
    kinds = [one.kind for one in going]
    assert kinds.index("CustomResourceDefinition") > kinds.index("Deployment")
    assert [len(group) for group in objects.group_by_kind(going)] == [2, 1, 1, 1, 1, 1, 1, 1]


def test_the_listing_omits_hashes():
    text = objects.listing([objects.ObjectRef("ConfigMap", "crewyard-system", "crewyard-config-7h5m9tk2c4")])
    assert "crewyard-config-…" in text and "7h5m9tk2c4" not in text


def test_only_the_contexts_name_confirms():
    context.confirm(CLUSTER, {"CONFIRM": "prod-eu"}, "all", "make up")
    for environment in ({}, {"CONFIRM": ""}, {"CONFIRM": "yes"}, {"CONFIRM": "prod-us"}):
        with pytest.raises(OperationRefused, match="make up") as refused:
            context.confirm(CLUSTER, environment, "It would do all this", "make up")
        assert refused.value.code == 2 and "https://k8s.example.com" in str(refused.value)


def test_a_context_of_another_cluster_is_refused(tmp_path):
    own = Settings(tmp_path / "current")
    identity.check(own, "2b0c", "prod-eu")
    identity.record(own, "2b0c")
    identity.check(own, "2b0c", "prod-eu")
    with pytest.raises(
        DevClusterError, match=r"prod-eu leads to another cluster(.|\n)*77f1(.|\n)*was 2b0c"
    ) as refused:
        identity.check(own, "77f1", "prod-eu")
    assert f"rm -r {own.state} {tmp_path}/cluster" in str(refused.value)
    identity.remove_record(own)
    identity.check(own, "77f1", "prod-eu")


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("v1.31.0", True),
        ("v1.33.2-gke.1", True),
        ("v1.36+", True),
        ("v1.30.9", False),
        ("v2.0.0", True),
        ("x", False),
    ],
)
def test_versions(version, enough):
    assert context.new_enough(version) is enough


def test_a_port_in_use_is_not_mistaken_for_the_service(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(port_forward, "FORWARDED_PORT", other.getsockname()[1])
        with pytest.raises(DevClusterError, match=r"in use.*CREWYARD_PUBLIC_URL"):
            port_forward.start(Settings(tmp_path), "/bin/false", {})


def test_a_port_forward_to_a_pod_that_is_gone_is_started_again(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setattr(port_forward, "FORWARDED_PORT", free.getsockname()[1])
    kubectl, lost, own = tmp_path / "kubectl", tmp_path / "lost", Settings(tmp_path / "current")
    kubectl.write_text(KUBECTL.format(python=sys.executable, lost=str(lost)))
    kubectl.chmod(0o755)
    try:
        port_forward.start(own, str(kubectl), {})
        first = program.running(own, port_forward.NAME)
        port_forward.start(own, str(kubectl), {})
        assert program.running(own, port_forward.NAME) == first
        lost.touch()
        port_forward.start(own, str(kubectl), {})
        assert program.running(own, port_forward.NAME) not in (first, None)
    finally:
        port_forward.stop(own)


@pytest.fixture
def programs(tmp_path, monkeypatch) -> StubPrograms:
    recorded = StubPrograms(tmp_path / "recorded")
    recorded.add(
        "docker",
        StubResponse(("image", "inspect"), json.dumps([IMAGE])),
        *(StubResponse((word,)) for word in ("pull", "build", "push", "manifest")),
    )
    monkeypatch.setenv("PATH", f"{recorded.bin}:/usr/bin:/bin")
    return recorded


def ensure_image(programs: StubPrograms, tmp_path: Path, *architectures: str, chosen: str = "") -> str:
    nodes = [{"status": {"nodeInfo": {"architecture": name}}} for name in architectures]
    programs.add("kubectl", StubResponse(("/api/v1/nodes",), json.dumps({"items": nodes}), anywhere=True))
    kubectl = KubectlApi(str(programs.bin / "kubectl"), tmp_path / "kubeconfig")
    install = options.InstallOptions("registry.example.com/team", image=chosen)
    return image.ensure(Settings(tmp_path), install, kubectl, StepProgress(io.StringIO()))


def test_the_image_is_built_for_the_architecture_of_the_nodes(programs, tmp_path):
    for architectures in (["arm64", "arm64"], ["amd64"], ["amd64"], []):
        assert ensure_image(programs, tmp_path, *architectures) == IMAGE
    built = [call for call in programs.calls("docker") if call[0] == "build"]
    platforms = [[word for word in call if word.startswith("--platform=")] for call in built]
    assert platforms == [["--platform=linux/arm64"], ["--platform=linux/amd64"], []]
    assert len({call[-2] for call in built}) == 3


def test_nodes_of_several_architectures_need_a_given_image(programs, tmp_path):
    with pytest.raises(DevClusterError, match=r"amd64, arm64.*CREWYARD_IMAGE"):
        ensure_image(programs, tmp_path, "arm64", "amd64")
    assert ensure_image(programs, tmp_path, "arm64", "amd64", chosen=IMAGE) == IMAGE
    assert programs.calls("docker") == []


def test_who_may_not_list_nodes_gets_an_image_for_this_machine(programs, tmp_path, monkeypatch):
    def refuse(*_):
        raise KubeApiError(403, "nodes is forbidden")

    monkeypatch.setattr(KubectlApi, "call", refuse)
    assert ensure_image(programs, tmp_path, "arm64") == IMAGE
    assert not [word for call in programs.calls("docker") for word in call if "platform" in word]
