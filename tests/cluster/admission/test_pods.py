"""Pods that the admission policy accepts in the crews namespace, checked by the real apiserver."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.config import ControllerConfig
from controller.deployment import pod as build_pod
from controller.deployment.build_result import DependenciesMissing
from controller.images import pod as prune_pod
from controller.pull_ahead import pod as pull_pod
from controller.run import pod as run_pod
from crds.objects import Deployment, Project, Run
from kube import errors
from tests.cluster.admission.conftest import FILE, PodCreators, dry_run_error, pod

DIGEST = f"registry.example.com/crews/demo@sha256:{'0' * 64}"
COMPONENT = "app.kubernetes.io/component"
NOW = 1_800_000_000


def container(**security: Any) -> dict[str, Any]:
    """Return a container with a changed security context."""
    whole = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **security}
    return {"name": "other", "image": "none.invalid/none:1", "securityContext": whole}


def of(**security: Any) -> dict[str, Any]:
    """Return a pod with one such container."""
    return pod(containers=[container(**security)])


def user(**security: Any) -> dict[str, Any]:
    """Return a pod with a changed security context."""
    return pod(
        securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **security}
    )


def volume(**source: Any) -> dict[str, Any]:
    """Return a pod with a volume."""
    return pod(volumes=[{"name": "v", **source}])


PLAIN = {"name": "main", "image": "none.invalid/none:1"}
TABLE: dict[str, dict[str, Any]] = {
    "ordinary": pod(),
    "no user named": user(),
    "root by number": user(runAsUser=0),
    "root by number in a container": of(runAsUser=0),
    "runAsNonRoot not set": pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    "runAsNonRoot set by the container alone": pod(
        securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
        containers=[container(runAsNonRoot=True)],
    ),
    "taken back by a container": of(runAsNonRoot=False),
    "taken back by an init container": pod(initContainers=[container(runAsNonRoot=False)]),
    "no security context": pod(containers=[PLAIN]),
    "an init container without": pod(initContainers=[{**PLAIN, "name": "first"}]),
    "more privileges": of(allowPrivilegeEscalation=True),
    "privileges not spoken of": pod(
        containers=[{**PLAIN, "securityContext": {"capabilities": {"drop": ["ALL"]}}}]
    ),
    "privileged": of(privileged=True, allowPrivilegeEscalation=True),
    "nothing dropped": of(capabilities={}),
    "some dropped": of(capabilities={"drop": ["NET_RAW"]}),
    "one given back": of(capabilities={"drop": ["ALL"], "add": ["NET_RAW"]}),
    "the port of a server": of(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "Kaniko's capabilities": of(capabilities={"drop": ["ALL"], "add": ["CHOWN", "FOWNER", "DAC_OVERRIDE"]}),
    "no seccomp": pod(securityContext={"runAsNonRoot": True}),
    "seccomp unconfined": user(seccompProfile={"type": "Unconfined"}),
    "seccomp unconfined in a container": of(seccompProfile={"type": "Unconfined"}),
    "seccomp by the container alone": pod(
        securityContext={"runAsNonRoot": True},
        containers=[container(seccompProfile={"type": "RuntimeDefault"})],
    ),
    "a profile of the node": user(seccompProfile={"type": "Localhost", "localhostProfile": "x.json"}),
    "empty volume": volume(emptyDir={}),
    "secret": volume(secret={"secretName": "a"}),
    "projected": volume(projected={"sources": []}),
    "a directory of the host": volume(hostPath={"path": "/"}),
    "nfs": volume(nfs={"server": "none.invalid", "path": "/"}),
    "iscsi": volume(iscsi={"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.invalid:a", "lun": 0}),
    "the host's network": pod(hostNetwork=True),
    "the host's processes": pod(hostPID=True),
    "the host's memory": pod(hostIPC=True),
    "a port of the host": pod(containers=[{**container(), "ports": [{"containerPort": 80, "hostPort": 80}]}]),
    "an unsafe sysctl": user(sysctls=[{"name": "kernel.msgmax", "value": "1"}]),
    "the whole of /proc": pod(hostUsers=False, containers=[container(procMount="Unmasked")]),
    "an SELinux user": user(seLinuxOptions={"user": "system_u"}),
}


async def test_policy_agrees_with_profile_restricted(creators: PodCreators):
    differing, refused = [], 0
    for name, body in TABLE.items():
        by_policy, by_profile = (
            await dry_run_error(creators.policy, body),
            await dry_run_error(creators.restricted, body),
        )
        refused += bool(by_policy)
        if bool(by_policy) != bool(by_profile):
            differing.append((name, by_policy, by_profile))
    assert differing == []
    assert 20 <= refused < len(TABLE)


def objects() -> tuple[Project, Deployment, Run]:
    meta = {"namespace": "crews", "generation": 1, "resourceVersion": "1"}
    deployment = {
        "project": "demo",
        "source": {"git": {"url": "https://git.example.com/a.git", "commit": "1" * 40}},
        "order": 1,
    }
    return (
        Project({"metadata": {**meta, "name": "demo", "uid": "uid-demo"}, "spec": {}, "status": {}}),
        Deployment(
            {
                "metadata": {**meta, "name": "dep-a", "uid": "uid-dep"},
                "spec": deployment,
                "status": {"image": DIGEST, "phase": "Active"},
            }
        ),
        Run(
            {
                "metadata": {**meta, "name": "run-a", "uid": "uid-run"},
                "spec": {"project": "demo"},
                "status": {},
            }
        ),
    )


def generated() -> dict[str, dict[str, Any]]:
    """Return one pod of every kind that the controller creates."""
    project, deployment, run = objects()
    config = ControllerConfig(
        namespace="crews",
        internal_url="http://crewyard-api.crewyard-system.svc:8080",
        token_key="k" * 32,
        service_image=DIGEST,
        kaniko_image=DIGEST,
        base_images={"3.11": DIGEST},
        registry="registry.example.com",
        registry_secret="push",
    )
    removal = prune_pod.ImageRemoval({}, (DIGEST,), ())
    return {
        "run": run_pod.build(run, project, deployment, frozenset(), config, NOW),
        "assemble": build_pod.assemble(deployment, project, "dep-a-a1", 1, config, NOW),
        **{
            name: build_pod.dependencies(deployment, project, "dep-a-d1", 2, missing, config, NOW)
            for name, missing in (
                ("dependencies", DependenciesMissing("key", "image:deps")),
                ("install", DependenciesMissing("key", "image:deps", "ab" * 32, "sha256:" + "cd" * 32)),
            )
        },
        "prune": prune_pod.build(project, removal, 1, config),
        "pull": pull_pod.build(project, deployment, "node-1", config),
        "announcement": prune_pod.announcement(project, removal, config),
    }


async def test_only_the_controller_may_create_its_pods(creators: PodCreators):
    for name, body in generated().items():
        assert await dry_run_error(creators.controller, body) == "", name
        assert "is reserved for pods that the controller of Crewyard creates" in await dry_run_error(
            creators.policy, body
        ), name


async def test_all_pods_but_those_that_install_are_restricted(creators: PodCreators):
    errors_by_pod = {
        name: await dry_run_error(creators.restricted, body) for name, body in generated().items()
    }
    refused = {name: error for name, error in errors_by_pod.items() if error}
    assert list(refused) == ["dependencies", "install"]
    for (name, error), container in zip(refused.items(), ("kaniko", "install"), strict=True):
        assert f'container "{container}"' in error and 'container "source"' not in error, name


def changed(body: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**body, "spec": {**copy.deepcopy(body["spec"]), **spec}}


def in_container(body: dict[str, Any], number: int, **more: Any) -> dict[str, Any]:
    found = copy.deepcopy(body)
    container = [*found["spec"].get("initContainers", []), *found["spec"]["containers"]][number]
    for key, value in more.items():
        if isinstance(value, dict):
            container[key] = {**container.get(key, {}), **value}
        else:
            container[key] = value
    return found


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("run", {"automountServiceAccountToken": True}, "automountServiceAccountToken"),
        ("run", {"shareProcessNamespace": True}, "shareProcessNamespace"),
        ("dependencies", {"automountServiceAccountToken": True}, "automountServiceAccountToken"),
        ("dependencies", {"shareProcessNamespace": True}, "shareProcessNamespace"),
        (
            "dependencies",
            {"volumes": [{"name": "workspace", "secret": {"secretName": "push"}}]},
            "only its workspace",
        ),
        ("prune", {"shareProcessNamespace": True}, "shareProcessNamespace"),
    ],
)
async def test_controller_pods_are_restricted_too(creators: PodCreators, kind, spec, message):
    assert message in await dry_run_error(creators.controller, changed(generated()[kind], **spec))


async def test_run_images_are_digests_and_kaniko_is_confined(creators: PodCreators):
    made = generated()
    cases = [
        (in_container(made["run"], 0, image="registry.example.com/crews/demo:latest"), "by digest"),
        (in_container(made["run"], 0, image=f"{DIGEST[:-1]}"), "by digest"),
        (in_container(made["pull"], 0, image="registry.example.com/crews/demo:latest"), "by digest"),
        (
            in_container(made["dependencies"], 1, securityContext={"allowPrivilegeEscalation": True}),
            "must be false",
        ),
        (
            in_container(
                made["dependencies"],
                1,
                securityContext={"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}},
            ),
            "capabilities",
        ),
        (
            in_container(made["dependencies"], 1, securityContext={"seccompProfile": {"type": "Unconfined"}}),
            "seccomp",
        ),
    ]
    for body, message in cases:
        assert message in await dry_run_error(creators.controller, body), message


async def test_existing_pod_gets_no_label_or_container(creators: PodCreators):
    kube = creators.policy
    body = pod(nodeSelector={"none.invalid/none": "1"})
    path = f"/api/v1/namespaces/{kube.namespace}/pods"
    await kube.call("POST", path, body={"apiVersion": "v1", "kind": "Pod", **body})
    merge = "application/merge-patch+json"
    labels = {"metadata": {"labels": {COMPONENT: "build"}}}
    with pytest.raises(
        (errors.KubeForbidden, errors.Invalid), match="is reserved for pods that the controller"
    ):
        await kube.call("PATCH", f"{path}/asked", body=labels, content_type=merge)
    ephemeral = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "none.invalid/none:1"}]}}
    with pytest.raises((errors.KubeForbidden, errors.Invalid), match="allowPrivilegeEscalation"):
        await kube.call(
            "PATCH",
            f"{path}/asked/ephemeralcontainers",
            body=ephemeral,
            content_type="application/strategic-merge-patch+json",
        )
    # Other metadata may change.
    harmless = {"metadata": {"annotations": {"a": "b"}, "labels": {"a": "b"}}}
    await kube.call("PATCH", f"{path}/asked", body=harmless, content_type=merge)
    await kube.call("DELETE", f"{path}/asked", {"gracePeriodSeconds": "0"})


def test_policy_binding_selects_the_crews_namespace():
    [binding] = [one for one in yaml.safe_load_all(FILE.read_text()) if one["kind"].endswith("PolicyBinding")]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
    namespaces = yaml.safe_load_all(Path(FILE.with_name("namespaces.yaml")).read_text())
    selected = [
        namespace["metadata"]["name"]
        for namespace in namespaces
        if selector.items() <= namespace["metadata"]["labels"].items()
    ]
    assert selected == ["crews"] and binding["spec"]["validationActions"] == ["Deny"]
