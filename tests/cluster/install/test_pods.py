"""Pods on special nodes: what the controller makes of CREWYARD_PODS is taken by the real apiserver."""

import json
import secrets

import pytest

from controller.config import ControllerConfig
from controller.deployment import pod as build_pod
from controller.pods.placement import parse_placements
from controller.run import pod as run_pod
from crds.objects import Deployment, Project, Run
from tests.cluster.install.installation import CommandError, kubectl, until

PLACES = {
    "run": {"runtimeClassName": "", "imagePullSecrets": [{"name": "pull"}]},
    "build": {"nodeSelector": {"pool": "builds"}, "tolerations": [{"key": "builds", "operator": "Exists"}]},
    "plans": {
        "pro": {
            "nodeSelector": {"accelerator": "nvidia"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
        }
    },
}


@pytest.fixture
def place():
    """A namespace with the profile *restricted* and a RuntimeClass of the same name."""
    name = f"install-{secrets.token_hex(3)}"
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc"}
    kubectl("create", "namespace", name)
    try:
        kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        kubectl("apply", "-f", "-", given=json.dumps({**runtime, "metadata": {"name": name}}))
        # Without it no pod is taken; it comes a moment after the namespace.
        until(lambda: kubectl("-n", name, "get", "serviceaccount", "default", "--ignore-not-found"))
        yield name
    finally:
        kubectl("delete", "runtimeclass", name, "--ignore-not-found")
        kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def config(name, places):
    return ControllerConfig(
        namespace=name,
        internal_url="http://crewyard-api.crewyard-system.svc:8080",
        token_key="0123456789abcdef",
        service_image="registry.example.com/service:1",
        kaniko_image="registry.example.com/kaniko:1",
        base_images={"3.11": "registry.example.com/python:3.11-slim"},
        registry="registry.example.com",
        placements=parse_placements(json.dumps(places)),
    )


def thing(kind, name, namespace, spec, **status):
    metadata = {"name": name, "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000000"}
    return kind({"metadata": metadata, "spec": spec, "status": status})


def taken(name, body):
    """The pod as the apiserver would keep it."""
    whole = {"apiVersion": "v1", "kind": "Pod", **body}
    whole["metadata"] = {**whole["metadata"], "namespace": name}
    given = json.dumps(whole)
    return json.loads(
        kubectl("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", given=given)
    )


def test_run_pod_with_gpu_and_runtime_class_is_restricted(place):
    places = {**PLACES, "run": {"runtimeClassName": place}}
    project = thing(Project, "demo", place, {"plan": "pro"})
    deployment = thing(Deployment, "dep-a", place, {"project": "demo"}, image=f"r/x@sha256:{'0' * 64}")
    run = thing(Run, "run-a", place, {"project": "demo"})
    body = run_pod.build(run, project, deployment, frozenset(), config(place, places), 1_800_000_000)
    spec = taken(place, body)["spec"]
    assert spec["runtimeClassName"] == place
    assert spec["nodeSelector"] == {"accelerator": "nvidia"}
    resources = spec["containers"][0]["resources"]
    # A device is set aside whole.
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"
    with pytest.raises(CommandError, match="RuntimeClass"):
        taken(place, {**body, "spec": {**body["spec"], "runtimeClassName": f"{place}-no"}})


def test_assemble_pod_with_placement_is_restricted(place):
    project = thing(Project, "demo", place, {})
    deployment = thing(
        Deployment, "dep-a", place, {"project": "demo", "source": {"archive": {"upload": "upl_1"}}}
    )
    body = build_pod.assemble(deployment, project, "dep-a-1", 1, config(place, PLACES), 1_800_000_000)
    spec = taken(place, body)["spec"]
    assert spec["nodeSelector"] == {"pool": "builds"}
    assert {"key": "builds", "operator": "Exists"} in spec["tolerations"]
