"""Real kind and kubectl with Crewyard's configuration and manifests; only Docker is a stub."""

import io
import json
import shutil
import subprocess

import pytest

from dev.cluster.install import MANIFESTS
from dev.kind import configuration, installation
from dev.progress import StepProgress
from dev.settings import Settings
from tests.testbed.stub_programs import StubPrograms, StubResponse

pytestmark = pytest.mark.nightly

FACTS = {
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "MemoryLimit": True,
    "PidsLimit": True,
    "CPUShares": True,
}
DIGEST = f"sha256:{'c' * 64}"


def test_kind_accepts_configuration_and_creates_node(tmp_path, monkeypatch):
    kind = shutil.which("kind")
    if not kind:
        pytest.skip("there is no kind: run `make tools`")
    docker = StubPrograms(tmp_path / "recorded")
    docker.add(
        "docker",
        StubResponse(("info",), json.dumps(FACTS)),
        StubResponse(("run",), stderr="docker: not on this machine", code=125),
        StubResponse(("inspect",), "sha256:x\n"),
        *(StubResponse((word,)) for word in ("-v", "ps", "network", "rm")),
    )
    monkeypatch.setenv("PATH", f"{docker.bin}:/usr/bin:/bin")
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(configuration.cluster()))
    argv = [kind, "create", "cluster", f"--config={file}", f"--kubeconfig={tmp_path}/kubeconfig"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    # kind parsed the whole configuration strictly and failed only at Docker's response.
    assert "docker: not on this machine" in done.stderr, done.stderr
    (node,) = (call for call in docker.calls("docker") if call[0] == "run")
    assert "--publish=127.0.0.1:30080:30080/TCP" in node
    assert node[-1] == configuration.NODE_IMAGE and configuration.NODE in node


def test_kind_refuses_an_unknown_field(tmp_path, monkeypatch):
    kind = shutil.which("kind")
    if not kind:
        pytest.skip("there is no kind: run `make tools`")
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({**configuration.cluster(), "node": []}))
    docker = StubPrograms(tmp_path / "recorded")
    docker.add("docker", StubResponse(()))
    monkeypatch.setenv("PATH", f"{docker.bin}:/usr/bin:/bin")
    argv = [kind, "create", "cluster", f"--config={file}", f"--kubeconfig={tmp_path}/kubeconfig"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0 and "field node not found" in done.stderr


def test_kubectl_renders_the_manifests(tmp_path, monkeypatch):
    names = ("crewyard/service", "library/python", "crewyard/kaniko")
    digests = json.dumps([f"localhost:5001/{name}@{DIGEST}" for name in names])
    docker = StubPrograms(tmp_path / "recorded")
    network = [{"IPAM": {"Config": [{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]}}]
    docker.add(
        "docker",
        StubResponse(("image", "inspect"), digests),
        StubResponse(("network", "inspect"), json.dumps(network)),
        *(StubResponse((word,)) for word in ("pull", "tag", "push", "build")),
    )
    kubectl = shutil.which("kubectl")
    monkeypatch.setenv("PATH", f"{docker.bin}:/usr/bin:/bin")
    directory = installation.write(Settings(tmp_path / "kind"), {}, "172.18.0.1", StepProgress(io.StringIO()))
    assert kubectl and MANIFESTS.is_dir()
    made = subprocess.run(
        [kubectl, "kustomize", directory], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert f"image: registry.crewyard.internal:5000/crewyard/service@{DIGEST}" in made
    assert "nodePort: 30080" in made and "type: NodePort" in made
    assert "cidr: 172.18.0.1/32" in made and "name: ground-builds" in made
    assert "CREWYARD_NET_DENY: 172.18.0.0/16,10.244.0.0/16,10.96.0.0/16" in made
