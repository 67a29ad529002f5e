"""The service as it is built and as it runs: no rights that it does not need."""

import json
import os

import pytest

from dev import settings
from dev.sbom import image
from tests.security.apiserver import ApiserverClient

SYSTEM = "/apis/apps/v1/namespaces/crewyard-system/deployments"
CACHES = ("var/cache/apt/archives/", "var/cache/debconf/", "var/lib/apt/lists/", "root/.cache/")


async def deployments(apiserver: ApiserverClient) -> list[dict]:
    """Those of the service."""
    found = (await apiserver.call("GET", SYSTEM)).data["items"]
    assert {one["metadata"]["name"] for one in found} >= {"crewyard-api", "crewyard-controller"}
    return [one for one in found if one["metadata"]["name"].startswith("crewyard-")]


async def test_service_pods_are_restricted(apiserver):
    for deployment in await deployments(apiserver):
        pod, name = deployment["spec"]["template"]["spec"], deployment["metadata"]["name"]
        secure = pod["securityContext"]
        assert (secure["runAsNonRoot"], secure["runAsUser"]) == (True, 65532), name
        assert secure["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(pod), name
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert not context.get("privileged"), name
            assert "@sha256:" in container["image"], name
            assert container["resources"]["limits"]["memory"], name
            plain = [entry["name"] for entry in container.get("env", ()) if "value" in entry]
            assert not [entry for entry in plain if "KEY" in entry or "PASSWORD" in entry], name


async def test_service_settings_have_no_secret(apiserver):
    found = (await apiserver.call("GET", "/api/v1/namespaces/crewyard-system/configmaps")).data["items"]
    names = {name for one in found for name in one.get("data") or {}}
    assert "CREWYARD_REGISTRY" in names
    assert not names & {"CREWYARD_TOKEN_KEY", "CREWYARD_ADMIN_KEYS", "AWS_SECRET_ACCESS_KEY"}


@pytest.fixture(scope="module")
def contents() -> image.ImageContents:
    """What is in the image of the running service."""
    note = settings.from_environment(os.environ).data / "images/crewyard-service.json"
    if not note.exists():
        pytest.skip("the image was not built on this machine")
    return image.read("crewyard/service", json.loads(note.read_text())["digest"])


def test_service_image_has_user_and_no_secret(contents):
    assert contents.configuration["User"] == "65532:65532"
    set_here = {entry.partition("=")[0] for entry in contents.configuration["Env"]}
    assert not [name for name in set_here if name.endswith(("KEY", "TOKEN", "PASSWORD", "SECRET"))]
    assert {one.name.lower() for one in contents.python} >= {"aiohttp", "kopf", "pygit2"}
    assert {one.name for one in contents.debian} >= {"libc6"}


def test_service_image_has_no_setuid_files(contents):
    assert [name for name, mode in contents.files.items() if mode & 0o6000] == []
    assert [name for name, mode in contents.files.items() if mode & 0o002] == []
    ours = {name: mode for name, mode in contents.files.items() if name.startswith("opt/crewyard/")}
    assert len(ours) > 100


def test_service_image_has_no_caches(contents):
    kept = [name for name in contents.files if name.startswith(CACHES) and not name.endswith("/lock")]
    assert kept == []
    assert not [
        name for name in contents.files if name.endswith((".git/config", ".pypirc", ".netrc", "pip.conf"))
    ]
