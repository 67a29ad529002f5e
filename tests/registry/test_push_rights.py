"""Pushing with a credential that is good for one repository, to a real registry with a token service."""

import io
import json
import urllib.error
from functools import partial

import pytest

from build.errors import Refused
from build.image.manifest import digest_of, docker_image
from build.registry.credential import Credential
from build.registry.repository import Repository
from dev.registry import client as registry_client

from .conftest import Scoped

DATA = b"a layer"


def repository(scoped: Scoped, path: str, user: str = "") -> Repository:
    credential = Credential(scoped.auth(user), f"{user.replace('/', '-')}-push") if user else Credential()
    return Repository(f"{scoped.registry.address}/{path}", True, credential)


def push(where: Repository, tag: str = "one") -> str:
    where.push_blob(io.BytesIO(DATA), len(DATA), digest_of(DATA))
    return where.push_image(docker_image(json.dumps({"tag": tag}).encode(), []), tag)


def test_a_credential_pushes_and_removes_below_its_name(scoped_registry: Scoped) -> None:
    for path in ("crews/tides", "crews/tides/cache"):
        own = repository(scoped_registry, path, "crews/tides")
        digest = push(own)
        assert (own.tags(10), own.digest("one")) == (["one"], digest)
        assert own.delete(digest) is True and own.digest("one") is None


PLACES = ("crews/moon", "crews/tides2", "crews", "library/python", "crewyard/service")


@pytest.mark.parametrize("user", ["", "crews/tides"])
def test_elsewhere_it_only_pulls(scoped_registry: Scoped, user: str) -> None:
    for path in PLACES:
        owner = repository(scoped_registry, path, path)
        digest = push(owner)
        other = repository(scoped_registry, path, user)
        assert other.digest("one") == digest and other.has_blob(digest_of(DATA))
        named = f"{user.replace('/', '-')}-push" if user else "name its Secret"
        for attempt in (
            partial(other.push_blob, io.BytesIO(b"new"), 3, digest_of(b"new")),
            partial(other.push_image, docker_image(b"{}", []), "one"),
            partial(other.delete, digest),
        ):
            with pytest.raises(Refused) as refused:
                attempt()
            assert refused.value.reason == "RegistryPush" and named in refused.value.hint
        assert owner.digest("one") == digest


def test_a_wrong_password_is_an_answer_that_names_the_secret(scoped_registry: Scoped) -> None:
    address = scoped_registry.registry.address
    auth = json.dumps({"auths": {address: {"username": "crews/tides", "password": "wrong"}}})
    with pytest.raises(Refused) as refused:
        Repository(f"{address}/crews/tides", True, Credential(auth, "tides-push")).digest("one")
    assert "tides-push" in refused.value.hint


def test_what_reads_images_on_this_machine_gets_by_without_a_password(scoped_registry: Scoped) -> None:
    digest = push(repository(scoped_registry, "crews/tides", "crews/tides"))
    url = f"http://{scoped_registry.registry.address}"
    accept = "application/vnd.docker.distribution.manifest.v2+json"
    with registry_client.opened(f"{url}/v2/crews/tides/manifests/{digest}", accept) as answer:
        assert digest_of(answer.read()) == digest
    config = digest_of(json.dumps({"tag": "one"}).encode())
    anybody = registry_client.Client(url)
    assert anybody.call("HEAD", f"/v2/crews/tides/blobs/{config}")[0] == 200
    assert anybody.call("POST", "/v2/crews/tides/blobs/uploads/", b"")[0] == 401
    assert anybody.call("DELETE", f"/v2/crews/tides/manifests/{digest}")[0] == 401
    with pytest.raises(urllib.error.HTTPError):
        registry_client.opened(f"{url}/v2/_catalog")


@pytest.mark.parametrize(
    "path",
    [
        "crews/tides/../moon",
        "crews/tides/%2e%2e/moon",
        "crews/tides%2f..%2fmoon",
        "crews//moon",
        "./crews/moon",
        "crews/moon",
        "crews/tides/../../crews/moon",
    ],
)
def test_no_way_of_writing_an_address_leads_elsewhere(scoped_registry: Scoped, path: str) -> None:
    """The registry itself judges the name that it will use."""
    digest = push(repository(scoped_registry, "crews/moon", "crews/moon"))
    address = scoped_registry.registry.address
    auth = json.loads(scoped_registry.auth("crews/tides"))["auths"][address]["auth"]
    client = registry_client.Client(f"http://{address}", auth)
    status, location = client.call("POST", f"/v2/{path}/blobs/uploads/", b"")
    assert status not in (201, 202) or "/crews/moon/" not in location
    for method, target in (("PUT", "manifests/one"), ("DELETE", f"manifests/{digest}")):
        client.call(method, f"/v2/{path}/{target}", b"{}")
    assert repository(scoped_registry, "crews/moon").digest("one") == digest
