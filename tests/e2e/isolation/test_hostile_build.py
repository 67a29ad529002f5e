"""A build that tries to get at others is stopped every time, and is not where nothing stops it."""

import base64
import json
import os
import re
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from crds import pod_tokens
from dev.images.images import recorded
from dev.registry import access
from dev.settings import from_environment
from tests.e2e.failures import failed
from tests.e2e.isolation.test_hostile import LISTENS, METADATA, address_of_metadata
from tests.e2e.registry import RegistryRepository
from tests.e2e.testbed import NAMESPACE, E2eTestbed, eventually
from tests.e2e.upload_project import UploadProject, tree
from tests.testbed.listeners import listening

HOSTILE = Path(__file__).parent / "hostile_build"
GOOD = {"main.py": "def kickoff(inputs):\n    return 'calm'\n", "requirements.txt": ""}
ATTEMPTS = 53
"""All in tests/e2e/isolation/hostile_build: one that is not made is a failure."""
NOWHERE = f"sha256:{'0' * 64}"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or os.environ.get("CREWYARD_CLUSTER") in ("kind", "current"),
    reason="the node and its registry are not this machine's, or this is not root",
)
# These fail without restrictions too: no account has the right, other policies stop them in all
# pods, or they would harm shared services.
NOT_COMPARED = {
    *("list_all_repositories", "push_with_a_token_without_a_signature", "push_with_a_token_for_pulling"),
    *("push_with_a_token_of_another_kind_of_signature", "push_with_other_claims_under_a_true_signature"),
    *("plant_a_tag_in_base", "plant_a_tag_in_service"),
    *("reach_api_by_another_port", "reach_controller_by_another_port"),
    *("secrets_in_command_lines", "processes_of_other_containers"),
}
FREE = """
import json, os, sys
sys.path.insert(0, "/tries")
import tries
print("TRIED " + json.dumps(tries.everything(json.load(open("/tries/places.json")))))
"""


def canary() -> str:
    return f"canary-{secrets.token_hex(12)}"


async def keep(
    testbed: E2eTestbed, name: str, kind: str = "Opaque", namespace: str = NAMESPACE, **data: str
) -> None:
    """Write a Secret, by kubectl and not by its command line."""
    body = {"apiVersion": "v1", "kind": "Secret", "type": kind}
    body |= {"metadata": {"name": name, "namespace": namespace}, "stringData": data}
    await testbed.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=json.dumps(body))


def opens(repository: str, word: str = "") -> dict[str, str]:
    """A push credential that is good for a repository, with a canary beside it."""
    config = json.loads(access.docker_config(from_environment(os.environ), repository))
    return {".dockerconfigjson": json.dumps({**config, "word": word})}


DOCKER = "kubernetes.io/dockerconfigjson"


@dataclass
class TwoProjects:
    """Two projects, each with a push credential of its own, the second one with a built deployment."""

    own: UploadProject
    other: UploadProject
    secrets: dict[str, str]
    built: str
    image: str
    own_image: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def two(testbed: E2eTestbed) -> AsyncIterator[TwoProjects]:
    projects, words = [], {}
    for part in ("own", "other"):
        name = f"e2e-{part}-{secrets.token_hex(4)}"
        words[name] = canary()
        await keep(testbed, f"{name}-push", DOCKER, **opens(f"{NAMESPACE}/{name}", words[name]))
        push = {"push": {"secret_ref": {"name": f"{name}-push"}}}
        await testbed.post("/v1/projects", {"name": name, "plan": "pro", "build": push})
        projects.append(UploadProject(testbed, name))
    own, other = projects
    try:
        built, mine = await other.deploy_and_wait(GOOD), await own.deploy_and_wait(GOOD)
        yield TwoProjects(own, other, words, built, await other.image(built), await own.image(mine))
    finally:
        await testbed.kubectl("delete", "cproj", *words, "--ignore-not-found", "--wait=false")
        await testbed.kubectl("delete", "secret", *(f"{name}-push" for name in words), "--ignore-not-found")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(testbed: E2eTestbed, two: TwoProjects, host_address: str) -> AsyncIterator[dict[str, Any]]:
    """Addresses of all services, and of the listeners and the neighbour that no build may reach."""
    found = from_environment(os.environ)
    images = recorded(found)
    running = ["--namespace", "crewyard-system", "--field-selector=status.phase=Running", "-o", "json"]
    pods = json.loads(await testbed.kubectl("get", "pods", *running))["items"]
    by = {one["metadata"]["labels"]["app.kubernetes.io/component"]: one for one in pods}
    service = json.loads(
        await testbed.kubectl("get", "deploy", "crewyard-api", "--namespace", "crewyard-system", "-o", "json")
    )["spec"]["template"]["spec"]["containers"][0]["image"]
    base = images.base
    other = RegistryRepository.of(two.image)
    [layer, *_] = (await other.manifest(two.image))["layers"]
    deps = next(tag for tag in await other.tags() if tag.startswith("deps-"))
    planned = (await two.other.object(two.built))["spec"]["source"]["archive"]["upload"]
    images_of = {"own": two.own_image, "other": two.image, "base": base, "service": service}
    digests = {name: image.partition("@")[2] for name, image in images_of.items()}
    outside = f"e2e-outside-{secrets.token_hex(4)}"
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": outside}}
    # The second lets its pods reach the controller's port.
    body["metadata"]["labels"] = {
        "pod-security.kubernetes.io/enforce": "privileged",
        "crewyard.dev/metrics": "true",
    }
    await testbed.kubectl("create", "-f", "-", stdin=json.dumps(body))
    try:
        await eventually(
            lambda: testbed.kubectl("get", "sa", "--namespace", outside), lambda text: "default" in text
        )
        spec = {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": base, "command": ["python3", "-c", LISTENS]}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "listens"}, "spec": spec}
        await testbed.kubectl("create", "--namespace", outside, "-f", "-", stdin=json.dumps(pod))
        await eventually(
            lambda: testbed.kubectl("logs", "listens", "--namespace", outside, check=False),
            lambda text: text.startswith("listening"),
            120,
        )
        seen = json.loads(
            await testbed.kubectl("get", "pod", "listens", "--namespace", outside, "-o", "json")
        )
        with (
            address_of_metadata(),
            listening(METADATA, port=80) as metadata,
            listening(host_address, port=2379) as etcd,
        ):
            yield {
                "own": canary(),
                "made_up": "made-up." + "x" * 40,
                "reach": {
                    "apiserver": (host_address, 6443),
                    "apiserver_by_its_service": ("10.214.0.1", 443),
                    "kubelet": (host_address, 10250),
                    "etcd": (host_address, 2379),
                    "metadata": (METADATA, 80),
                    "neighbour": (seen["status"]["podIP"], 7000),
                    "api_by_another_port": (by["api"]["status"]["podIP"], 9090),
                    "controller_by_another_port": (by["controller"]["status"]["podIP"], 8080),
                },
                "registry": (host_address, 5000),
                "repositories": {
                    "own": f"{NAMESPACE}/{two.own.project}",
                    "other": f"{NAMESPACE}/{two.other.project}",
                    "base": base.partition("/")[2].partition("@")[0],
                    "service": service.partition("/")[2].partition("@")[0],
                },
                "digests": digests,
                "doomed": {**digests, "base": NOWHERE, "service": NOWHERE},
                "tags": {"own": deps, "other": deps, "base": "3.11-slim", "service": "latest"},
                "layer": layer["digest"],
                "api": "http://crewyard-api.crewyard-system.svc:8080",
                "controller": f"http://{by['controller']['status']['podIP']}:9090",
                "other": two.built.replace("_", "-", 1),
                "other_project": two.other.project,
                "upload": planned,
                "forged_image": two.image,
                "listeners": {"metadata": metadata, "etcd": etcd},
                "outside": outside,
                "image": base,
            }
    finally:
        await testbed.kubectl("delete", "namespace", outside, "--ignore-not-found", "--wait=false")


def places_json(places: dict[str, Any], **more: Any) -> str:
    return json.dumps({**{k: v for k, v in places.items() if k not in ("listeners", "outside")}, **more})


async def state_of(two: TwoProjects) -> Any:
    """What no attempt may change: the other project's tags, image, deployment and log."""
    other = RegistryRepository.of(two.image)
    found = await two.other.object(two.built)
    return await other.tags(), await other.manifest(two.image), found, await two.other.log(two.built)


@pytest.mark.nightly
async def test_every_attempt_of_a_build_is_blocked(
    testbed: E2eTestbed, two: TwoProjects, places: dict[str, Any]
):
    """Slow: five builds, and attempts that end by their timeouts."""
    before, variable = await state_of(two), canary()
    answer = await testbed.call(
        "PUT", f"/v1/projects/{two.own.project}/env", {"variables": {"WORD": variable}}
    )
    assert answer.status == 200, answer.body
    visits = {key: one.visits for key, one in places["listeners"].items()}
    deployment = await two.own.deploy({**tree(HOSTILE), "places.json": places_json(places)})
    done = await two.own.wait_finished(deployment)
    log = await two.own.log(deployment)
    [line] = re.findall(r"TRIED (\{.*\})", log)[:1] or [None]
    assert line is not None, (done, log[-3000:])
    tried = json.loads(line)
    print(json.dumps(tried, indent=1))
    assert {key: one["how"] for key, one in tried.items() if not one["stopped"]} == {}
    assert len(tried) == ATTEMPTS
    assert {key: one.visits for key, one in places["listeners"].items()} == visits
    assert await state_of(two) == before
    # No canary came out by the log either.
    assert [word for word in (variable, *two.secrets.values()) if word in log] == []
    # The other project keeps its image, and its own credential still works.
    again = await two.other.deploy_and_wait({**GOOD, "note.txt": secrets.token_hex()})
    assert (await two.other.object(again))["status"]["plan"] == before[2]["status"]["plan"]
    good = await two.own.deploy_and_wait({**GOOD, "note.txt": secrets.token_hex()})
    assert (await two.own.image(good)).partition("@")[0].endswith(two.own.project)


@pytest.mark.nightly
async def test_attempts_succeed_with_credentials_unrestricted(
    testbed: E2eTestbed, two: TwoProjects, places: dict[str, Any]
):
    """So each is one that could succeed.

    Slow: builds, and three pods that try everything one after the other.
    """
    found, outside = from_environment(os.environ), places["outside"]
    manifests: dict[str, str] = {}
    for part, upload_project in (("own", two.own), ("other", two.other)):
        made = await upload_project.deploy_and_wait({**GOOD, "doomed.txt": secrets.token_hex()}, preview={})
        manifests[part] = (await upload_project.image(made)).partition("@")[2]
    key = base64.b64decode(
        json.loads(
            await testbed.kubectl(
                "get", "secret", "crewyard-tokens", "--namespace", "crewyard-system", "-o", "json"
            )
        )["data"]["key"]
    ).decode()
    stolen = await two.other.object(two.built)
    token = pod_tokens.mint(
        key, "build", NAMESPACE, places["other"], stolen["metadata"]["uid"], int(time.time()) + 600
    )
    # One who may push to crews, and by the same rule who may elsewhere, one after the other.
    came: dict[str, Any] = {}
    files = {path: content for path, content in tree(HOSTILE).items() if "/" not in path}
    for number, user in enumerate(("crews", "library/python", "crewyard/service")):
        more = {
            "basic": access.basic(found, user),
            "token": token,
            "key": testbed.key,
            "digests": {**places["digests"], "base": NOWHERE, "service": NOWHERE},
            "doomed": {**places["doomed"], **manifests},
            "tags": dict.fromkeys(places["tags"], f"e2e-{secrets.token_hex(4)}"),
            "pod_uid": "none",
        }
        name = f"free-{number}"
        data = {path.replace("/", "-"): content.decode() for path, content in files.items()}
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        whole["data"] = {**data, "places.json": places_json(places, **more)}
        await testbed.kubectl("create", "--namespace", outside, "-f", "-", stdin=json.dumps(whole))
        await keep(testbed, name, namespace=outside, **{"config.json": canary()})
        container = {
            "name": "main",
            "image": places["image"],
            "command": ["python3", "-c", FREE],
            "env": [{"name": "API_TOKEN", "value": canary()}, {"name": "DOCKER_CONFIG", "value": "/docker"}],
            "securityContext": {"privileged": True, "runAsUser": 0},
            # Without a share it would starve beside tests that need all of the machine.
            "resources": {"requests": {"cpu": "100m"}},
            "volumeMounts": [
                {"name": "tries", "mountPath": "/tries"},
                {"name": "docker", "mountPath": "/docker"},
            ],
        }
        volumes = [{"name": "tries", "configMap": {"name": name}}]
        volumes.append({"name": "docker", "secret": {"secretName": name}})
        spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await testbed.kubectl("create", "--namespace", outside, "-f", "-", stdin=json.dumps(pod))

        async def phase(name: str = name) -> str:
            seen = await testbed.kubectl("get", "pod", name, "--namespace", outside, "-o", "json")
            return str(json.loads(seen)["status"].get("phase"))

        ended = await eventually(phase, lambda text: text in ("Succeeded", "Failed"), 600, 0.5)
        said = await testbed.kubectl("logs", name, "--namespace", outside)
        assert ended == "Succeeded", said
        for attempt, one in json.loads(said.rpartition("TRIED ")[2]).items():
            if attempt not in came or came[attempt]["stopped"]:
                came[attempt] = one
    stopped = {name: one["how"] for name, one in came.items() if one["stopped"] and name not in NOT_COMPARED}
    assert stopped == {}
    assert len(came) == ATTEMPTS and set(came) > NOT_COMPARED
    assert all(listener.visits for listener in places["listeners"].values())


@pytest.mark.nightly
async def test_push_credential_is_per_project(testbed: E2eTestbed, two: TwoProjects, upload_projects: Any):
    """That of another project opens nothing here; and one that is not there is named.

    Slow: two builds up to the refused push.
    """
    assert await RegistryRepository.of(two.image).tags()
    for name, said in (
        (f"{two.other.project}-push", "401"),
        ("e2e-none-such", "does not exist"),
    ):
        upload_project = await upload_projects(build={"push": {"secret_ref": {"name": name}}})
        deployment = await upload_project.deploy({**GOOD, "note.txt": secrets.token_hex()})
        await failed(upload_project, deployment, "RegistryPush", [said, name])
        image = two.image.replace(two.other.project, upload_project.project)
        assert await RegistryRepository.of(image).tags() == set()
