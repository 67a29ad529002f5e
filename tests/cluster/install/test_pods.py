"""Pod placement: the real apiserver accepts the pods that the controller builds from CREWYARD_PODS."""

import json
import secrets

import pytest

from controller.config import ControllerConfig
from controller.deployment import pod as build_pod
from controller.pods.placement import parse_placements
from controller.run import pod as run_pod
from crds.objects import Deployment, Project, Run
from tests.cluster.install.installation import CommandError, kubectl, until

PLACEMENTS = {
    "run": {"runtimeClassName": "", "imagePullSecrets": [{"name": "pull"}]},
    "build": {
        "hostUsers": False,
        "nodeSelector": {"pool": "builds"},
        "tolerations": [{"key": "builds", "operator": "Exists"}],
    },
    "plans": {
        "pro": {
            "nodeSelector": {"accelerator": "nvidia"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
        }
    },
}


@pytest.fixture
def namespace():
    """A namespace with the profile *restricted* and a RuntimeClass of the same name."""
    name = f"install-{secrets.token_hex(3)}"
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc"}
    kubectl("create", "namespace", name)
    try:
        kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        kubectl("apply", "-f", "-", stdin=json.dumps({**runtime, "metadata": {"name": name}}))
        # Pods need it; it is created shortly after the namespace.
        until(lambda: kubectl("-n", name, "get", "serviceaccount", "default", "--ignore-not-found"))
        yield name
    finally:
        kubectl("delete", "runtimeclass", name, "--ignore-not-found")
        kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def config(name, placements):
    return ControllerConfig(
        namespace=name,
        internal_url="http://crewyard-api.crewyard-system.svc:8080",
        token_key="0123456789abcdef",
        service_image="registry.example.com/service:1",
        kaniko_image="registry.example.com/kaniko:1",
        base_images={"3.11": "registry.example.com/python:3.11-slim"},
        registry="registry.example.com",
        placements=parse_placements(json.dumps(placements)),
    )


def make_object(kind, name, namespace, spec, **status):
    metadata = {"name": name, "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000000"}
    return kind({"metadata": metadata, "spec": spec, "status": status})


def dry_run(namespace, body):
    """Return the pod as the apiserver would store it."""
    whole = {"apiVersion": "v1", "kind": "Pod", **body}
    whole["metadata"] = {**whole["metadata"], "namespace": namespace}
    text = json.dumps(whole)
    return json.loads(
        kubectl("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", stdin=text)
    )


def test_run_pod_with_gpu_and_runtime_class_is_restricted(namespace):
    placements = {**PLACEMENTS, "run": {"runtimeClassName": namespace, "hostUsers": False}}
    project = make_object(Project, "demo", namespace, {"plan": "pro"})
    deployment = make_object(
        Deployment, "dep-a", namespace, {"project": "demo"}, image=f"r/x@sha256:{'0' * 64}"
    )
    run = make_object(Run, "run-a", namespace, {"project": "demo"})
    body = run_pod.build(run, project, deployment, frozenset(), config(namespace, placements), 1_800_000_000)
    spec = dry_run(namespace, body)["spec"]
    assert (spec["runtimeClassName"], spec["hostUsers"]) == (namespace, False)
    assert spec["nodeSelector"] == {"accelerator": "nvidia"}
    resources = spec["containers"][0]["resources"]
    # Requests of a device equal its limits.
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    with pytest.raises(CommandError, match="RuntimeClass"):
        dry_run(namespace, {**body, "spec": {**body["spec"], "runtimeClassName": f"{namespace}-no"}})


def test_assemble_pod_with_placement_is_restricted(namespace):
    project = make_object(Project, "demo", namespace, {})
    deployment = make_object(
        Deployment, "dep-a", namespace, {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    )
    body = build_pod.assemble(deployment, project, "dep-a-1", 1, config(namespace, PLACEMENTS), 1_800_000_000)
    spec = dry_run(namespace, body)["spec"]
    assert (spec["nodeSelector"], spec["hostUsers"]) == ({"pool": "builds"}, False)
    assert {"key": "builds", "operator": "Exists"} in spec["tolerations"]
