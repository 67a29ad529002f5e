"""The build pods: who gets which credential, and who may do what."""

import json
from dataclasses import replace

import pytest

from controller.config import Timing
from controller.deployment import pod
from controller.deployment.build_result import DependenciesMissing
from controller.pods.placement import NodePlacement, NodePlacements
from crds.installation_limits import InstallationLimits
from crds.limits import PlanLimits, Plans
from crds.objects import Pod

NOW = 1_800_000_000
MISSING = DependenciesMissing("key", "image:deps")
INSTALLABLE = DependenciesMissing("key", "image:deps", "ab" * 32, "sha256:" + "cd" * 32)
GIT = {"url": "https://git.example.org/crew.git", "commit": "1" * 40}


@pytest.fixture
def bodies(make, secured):
    def bodies(config=secured, url=GIT["url"], missing=MISSING, **project):
        git = {"url": url, "secretRef": {"name": "git"}}
        owner = make.project(source={"git": git}, **project)
        deployment = make.deployment(built=False, source={"git": GIT})
        return {
            "assemble": pod.assemble(deployment, owner, "dep-a-a1", 1, config, NOW),
            "dependencies": pod.dependencies(deployment, owner, "dep-a-d1", 2, missing, config, NOW),
        }

    return bodies


def containers(body):
    spec = body["spec"]
    return {c["name"]: c for c in (*spec.get("initContainers", ()), *spec["containers"])}


def names(container):
    return {entry["name"] for entry in container.get("env", ())}


def test_each_container_gets_only_its_credentials(bodies):
    made = bodies()
    (assemble,) = containers(made["assemble"]).values()
    git = {
        "GIT_USERNAME",
        "GIT_PASSWORD",
        "GIT_BEARER_TOKEN",
        "GIT_CA_CRT",
        "GIT_IDENTITY",
        "GIT_KNOWN_HOSTS",
    }
    assert git | {"REGISTRY_AUTH", "CREWYARD_TOKEN"} <= names(assemble)
    parts = containers(made["dependencies"])
    assert git <= names(parts["source"]) and "REGISTRY_AUTH" not in names(parts["source"])
    assert git | {"REGISTRY_AUTH"} <= names(parts["push"])
    assert names(parts["kaniko"]) == set()
    assert not any("envFrom" in part for part in parts.values())


def test_signers_of_commits_are_where_commits_are_fetched(make, secured):
    git = {"url": GIT["url"], "verify": {"secretRef": {"name": "signers"}}}
    project, deployment = make.project(source={"git": git}), make.deployment(built=False, source={"git": GIT})
    (assemble,) = containers(pod.assemble(deployment, project, "dep-a-a1", 1, secured, NOW)).values()
    made = pod.dependencies(deployment, project, "dep-a-d1", 2, MISSING, secured, NOW)
    parts = containers(made)
    keys = {"GIT_ALLOWED_SIGNERS", "GIT_OPENPGP_KEYS"}
    assert not keys & names(parts["kaniko"])
    for container in (assemble, parts["source"], parts["push"]):
        assert keys <= names(container)
        (request,) = [e["value"] for e in container["env"] if e["name"] == "CREWYARD_BUILD"]
        assert json.loads(request)["verify"] is True
    uploaded = make.deployment(built=False)
    (container,) = containers(pod.assemble(uploaded, project, "dep-a-a1", 1, secured, NOW)).values()
    assert keys <= names(container), "an upload is refused, not built"


def test_git_credentials_are_not_sent_to_another_host(bodies):
    (assemble,) = containers(bodies(url="https://elsewhere.example.org/crew.git")["assemble"]).values()
    assert not [name for name in names(assemble) if name.startswith("GIT_")]


def test_pod_without_push_secret_references_none(bodies, config):
    (assemble,) = containers(bodies(config)["assemble"]).values()
    assert "REGISTRY_AUTH" not in names(assemble)


@pytest.mark.parametrize(
    ("installation", "own", "used"),
    [
        ("push", None, "push"),
        ("push", "tides-push", "tides-push"),
        ("push-{project}", None, "push-demo"),
        ("push-{project}", "tides-push", "tides-push"),
        ("", "tides-push", "tides-push"),
        ("", None, ""),
    ],
)
def test_push_secret_of_the_project_precedes_that_of_the_installation(
    bodies, config, installation, own, used
):
    build = {"build": {"push": {"secretRef": {"name": own}}}} if own else {}
    made = bodies(replace(config, registry_secret=installation), **build)
    parts = {**containers(made["assemble"]), **containers(made["dependencies"])}
    for name, part in parts.items():
        env = {entry["name"]: entry for entry in part.get("env", ())}
        shown = (env.get("REGISTRY_AUTH") or {}).get("valueFrom", {}).get("secretKeyRef", {}).get("name", "")
        assert shown == (used if name in ("assemble", "push") else "")
        if name != "kaniko":
            registry = json.loads(env["CREWYARD_BUILD"]["value"])["registry"]
            assert registry.get("secret", "") == used


def test_base_image_of_the_project_installs_without_credentials(bodies, secured):
    body = bodies(missing=INSTALLABLE)["dependencies"]
    parts = containers(body)
    assert list(parts) == ["source", "install", "push"]
    install = parts["install"]
    assert install["image"] == f"{secured.repository('demo')}@{INSTALLABLE.base_digest}"
    assert names(install) == set() and "envFrom" not in install
    assert install["command"][:3] == ["python3", "-I", "-S"]
    base = {"key": INSTALLABLE.base_key, "digest": INSTALLABLE.base_digest}
    for name in ("source", "push"):
        (request,) = [e["value"] for e in parts[name]["env"] if e["name"] == "CREWYARD_BUILD"]
        assert json.loads(request)["dependencies"] == {"key": "key", "base": base}
    recorded = {"baseKey": INSTALLABLE.base_key, "baseDigest": INSTALLABLE.base_digest}
    assert pod.base_of([Pod(body)]) == recorded
    assert pod.base_of([Pod(bodies()["dependencies"])]) == {}


def test_base_image_is_pulled_with_the_secrets_of_runs(bodies, secured):
    place = NodePlacement(image_pull_secrets=({"name": "runs"},))
    build = NodePlacement(image_pull_secrets=({"name": "builds"},))
    both = replace(secured, placements=NodePlacements(place, build))
    own = {"imagePullSecrets": [{"name": "own"}]}
    with_base = bodies(both, missing=INSTALLABLE, pod=own)["dependencies"]["spec"]
    assert {one["name"] for one in with_base["imagePullSecrets"]} == {"builds", "runs", "own"}
    by_kaniko = bodies(both, pod=own)["dependencies"]["spec"]
    assert by_kaniko["imagePullSecrets"] == [{"name": "builds"}]


@pytest.mark.parametrize("missing", [MISSING, INSTALLABLE])
def test_only_the_installation_is_root_with_three_capabilities(bodies, missing):
    made = bodies(missing=missing)
    for name, container in {**containers(made["assemble"]), **containers(made["dependencies"])}.items():
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        if name in ("kaniko", "install"):
            assert security["runAsUser"] == 0
            assert security["capabilities"] == {"drop": ["ALL"], "add": ["CHOWN", "FOWNER", "DAC_OVERRIDE"]}
        else:
            assert security["runAsNonRoot"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
    for body in made.values():
        assert body["spec"]["automountServiceAccountToken"] is False
        assert body["spec"]["enableServiceLinks"] is False
        assert body["spec"]["restartPolicy"] == "Never"


def test_assemble_has_no_volume_and_dependency_containers_share_one(bodies):
    made = bodies()
    assert "volumes" not in made["assemble"]["spec"]
    assert made["dependencies"]["spec"]["securityContext"]["fsGroup"] == 65532
    for container in containers(made["dependencies"]).values():
        assert container["volumeMounts"] == [{"name": "workspace", "mountPath": "/workspace"}]


def test_kaniko_is_insecure_only_for_the_configured_registry(bodies, config):
    plain = containers(bodies(config)["dependencies"])["kaniko"]["args"]
    assert "--insecure-registry=registry:5000" in plain
    assert "--skip-tls-verify-registry=registry:5000" in plain
    assert "--destination=image:deps" in plain and "--no-push" in plain
    secured = containers(bodies()["dependencies"])["kaniko"]["args"]
    assert not [flag for flag in secured if "insecure" in flag or "skip-tls" in flag]


def test_build_request_has_source_registry_and_limits(bodies, config):
    made = bodies(config)
    env = {e["name"]: e.get("value") for e in containers(made["assemble"])["assemble"]["env"]}
    request = json.loads(env["CREWYARD_BUILD"])
    assert request["source"] == {"git": {**GIT, "path": ""}}
    assert request["registry"] == {"prefix": "registry:5000/team", "insecure": True}
    assert request["base_images"] == config.base_images
    assert "dependencies" not in request and request["crew"] is None
    assert request["limits"]["entries"] == 50_000


def test_installation_limits_reach_the_build(bodies, config):
    limits = InstallationLimits(context_bytes=1, unpacked_bytes=2, entries=3, ratio=4, build_seconds=77)
    made = bodies(replace(config, limits=limits, timing=Timing.from_limits(limits)))
    for body, container in (("assemble", "assemble"), ("dependencies", "source")):
        env = {e["name"]: e.get("value") for e in containers(made[body])[container]["env"]}
        registry = json.loads(env["CREWYARD_BUILD"])["limits"]
        assert registry == {"context_bytes": 1, "unpacked_bytes": 2, "entries": 3, "ratio": 4}
        assert made[body]["spec"]["activeDeadlineSeconds"] == 77


def test_plan_lowers_the_bytes_of_an_image(bodies, config):
    small = replace(config, plans=Plans({"free": PlanLimits(60, 2, limits={"image_bytes": 1 << 20})}))
    for chosen, expected in ((config, 20 << 30), (small, 1 << 20)):
        for body, container in (("assemble", "assemble"), ("dependencies", "push")):
            env = {e["name"]: e.get("value") for e in containers(bodies(chosen)[body])[container]["env"]}
            assert json.loads(env["CREWYARD_BUILD"])["image_bytes"] == expected


def test_project_limits_reach_the_pod(bodies):
    made = bodies(build={"timeout": "5m", "resources": {"limits": {"memory": "8Gi"}}})
    assert made["assemble"]["spec"]["activeDeadlineSeconds"] == 300
    kaniko = containers(made["dependencies"])["kaniko"]
    assert kaniko["resources"]["limits"]["memory"] == "8Gi"
    assert bodies()["assemble"]["spec"]["activeDeadlineSeconds"] == 1800


def test_build_deadline_is_capped_by_the_installation(bodies, config):
    made = bodies(build={"timeout": "500000h"})
    for body, container in (("assemble", "assemble"), ("dependencies", "source")):
        assert made[body]["spec"]["activeDeadlineSeconds"] == 4 * 3600
        env = {e["name"]: e.get("value") for e in containers(made[body])[container]["env"]}
        assert json.loads(env["CREWYARD_BUILD"])["seconds"] == 4 * 3600
    shorter = replace(config, limits=InstallationLimits(build_max_seconds=60))
    assert bodies(shorter, build={"timeout": "5m"})["assemble"]["spec"]["activeDeadlineSeconds"] == 60
    assert bodies(shorter)["assemble"]["spec"]["activeDeadlineSeconds"] == 60
    lowered = replace(config, plans=Plans({"free": PlanLimits(60, 2, limits={"build_max_seconds": 50})}))
    assert bodies(lowered, build={"timeout": "5m"})["assemble"]["spec"]["activeDeadlineSeconds"] == 50


def test_only_the_downloading_container_gets_the_private_index(bodies):
    made = bodies(build={"secretRef": {"name": "index"}})
    parts = {**containers(made["assemble"]), **containers(made["dependencies"])}
    having = {name for name, part in parts.items() if {"PIP_INDEX_URL", "INDEX_PASSWORD"} & names(part)}
    assert having == {"source"}
    for name in ("assemble", "source", "push"):
        env = {e["name"]: e.get("value") for e in parts[name]["env"]}
        assert json.loads(env["CREWYARD_BUILD"])["private_index"] == "index"
    without = containers(bodies()["dependencies"])["source"]
    assert "PIP_INDEX_URL" not in names(without)
    assert "private_index" not in json.loads(
        next(e["value"] for e in without["env"] if e["name"] == "CREWYARD_BUILD")
    )


def test_the_projects_dockerfile_and_its_images_reach_the_build(bodies, config):
    allowing = replace(config, dockerfile_images=("ghcr.io/acme/",))
    made = bodies(allowing, build={"dockerfile": "docker/Dockerfile"})
    for body, container in (("assemble", "assemble"), ("dependencies", "source")):
        env = {e["name"]: e.get("value") for e in containers(made[body])[container]["env"]}
        request = json.loads(env["CREWYARD_BUILD"])
        assert request["dockerfile"] == "docker/Dockerfile"
        assert request["dockerfile_images"] == ["ghcr.io/acme/"]
        assert "namespaces" not in request
    kaniko = containers(made["dependencies"])["kaniko"]
    assert {"--context=dir:///workspace/context", "--dockerfile=/workspace/Dockerfile"} <= set(kaniko["args"])


def test_a_build_knows_the_namespaces_whose_images_are_of_crews(bodies, config):
    several = replace(config, namespaces=("team-a", "team-b"), dockerfile_images=("registry:5000",))
    for each in (
        several,
        several.of_namespace("team-a"),
        several.of_namespace("team-a").of_namespace("team-b"),
    ):
        env = {e["name"]: e.get("value") for e in containers(bodies(each)["assemble"])["assemble"]["env"]}
        assert json.loads(env["CREWYARD_BUILD"])["namespaces"] == [config.namespace, "team-a", "team-b"]


def test_packages_that_the_project_adds_reach_the_build(bodies):
    made = bodies(build={"requirements": ["beautifulsoup4>=4", "lxml"]})
    for body, container in (("assemble", "assemble"), ("dependencies", "source")):
        env = {e["name"]: e.get("value") for e in containers(made[body])[container]["env"]}
        assert json.loads(env["CREWYARD_BUILD"])["requirements"] == ["beautifulsoup4>=4", "lxml"]
    env = {e["name"]: e.get("value") for e in containers(bodies()["assemble"])["assemble"]["env"]}
    assert "requirements" not in json.loads(env["CREWYARD_BUILD"])


def test_kaniko_flags_reduce_memory(bodies):
    flags = containers(bodies()["dependencies"])["kaniko"]["args"]
    assert {"--compressed-caching=false", "--snapshot-mode=redo", "--cache=false"} <= set(flags)
