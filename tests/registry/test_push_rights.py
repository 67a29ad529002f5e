"""Push rights of a credential for one repository, in a real registry with a token service."""

import io
import json
import urllib.error
from functools import partial

import pytest

from build.errors import BuildRefused
from build.image.manifest import digest_of, image_of_layers
from build.registry.credential import RegistryCredential
from build.registry.repository import ImageRepository
from dev.registry import client as registry_client

from .conftest import ScopedRegistry

DATA = b"a layer"


def repository(scoped: ScopedRegistry, path: str, user: str = "") -> ImageRepository:
    credential = (
        RegistryCredential(scoped.auth(user), f"{user.replace('/', '-')}-push")
        if user
        else RegistryCredential()
    )
    return ImageRepository(f"{scoped.registry.address}/{path}", True, credential)


def push(target: ImageRepository, tag: str = "one") -> str:
    target.push_blob(io.BytesIO(DATA), len(DATA), digest_of(DATA))
    return target.push_image(image_of_layers(json.dumps({"tag": tag}).encode(), []), tag)


def test_credential_pushes_and_deletes_below_its_name(scoped_registry: ScopedRegistry) -> None:
    for path in ("crews/tides", "crews/tides/cache"):
        own = repository(scoped_registry, path, "crews/tides")
        digest = push(own)
        assert (own.tags(10), own.digest("one")) == (["one"], digest)
        assert own.delete(digest) is True and own.digest("one") is None


OTHER_REPOSITORIES = ("crews/moon", "crews/tides2", "crews", "library/python", "crewyard/service")


@pytest.mark.parametrize("user", ["", "crews/tides"])
def test_other_repositories_are_read_only(scoped_registry: ScopedRegistry, user: str) -> None:
    for path in OTHER_REPOSITORIES:
        owner = repository(scoped_registry, path, path)
        digest = push(owner)
        other = repository(scoped_registry, path, user)
        assert other.digest("one") == digest and other.has_blob(digest_of(DATA))
        hint = f"{user.replace('/', '-')}-push" if user else "configure its Secret"
        for attempt in (
            partial(other.push_blob, io.BytesIO(b"new"), 3, digest_of(b"new")),
            partial(other.push_image, image_of_layers(b"{}", []), "one"),
            partial(other.delete, digest),
        ):
            with pytest.raises(BuildRefused) as refused:
                attempt()
            assert refused.value.reason == "RegistryPush" and hint in refused.value.hint
        assert owner.digest("one") == digest


def test_error_for_a_wrong_password_names_the_secret(scoped_registry: ScopedRegistry) -> None:
    address = scoped_registry.registry.address
    auth = json.dumps({"auths": {address: {"username": "crews/tides", "password": "wrong"}}})
    with pytest.raises(BuildRefused) as refused:
        ImageRepository(f"{address}/crews/tides", True, RegistryCredential(auth, "tides-push")).digest("one")
    assert "tides-push" in refused.value.hint


def test_anonymous_access_is_read_only(scoped_registry: ScopedRegistry) -> None:
    digest = push(repository(scoped_registry, "crews/tides", "crews/tides"))
    url = f"http://{scoped_registry.registry.address}"
    accept = "application/vnd.docker.distribution.manifest.v2+json"
    with registry_client.open_url(f"{url}/v2/crews/tides/manifests/{digest}", accept) as response:
        assert digest_of(response.read()) == digest
    config = digest_of(json.dumps({"tag": "one"}).encode())
    anonymous = registry_client.RegistryClient(url)
    assert anonymous.call("HEAD", f"/v2/crews/tides/blobs/{config}")[0] == 200
    assert anonymous.call("POST", "/v2/crews/tides/blobs/uploads/", b"")[0] == 401
    assert anonymous.call("DELETE", f"/v2/crews/tides/manifests/{digest}")[0] == 401
    with pytest.raises(urllib.error.HTTPError):
        registry_client.open_url(f"{url}/v2/_catalog")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # The registry redirects to the plain path, where the right of that repository is needed.
        ("crews/tides/../moon", 301),
        ("crews/tides/%2e%2e/moon", 301),
        ("crews/tides%2f..%2fmoon", 301),
        ("crews//moon", 301),
        ("./crews/moon", 301),
        ("crews/moon", 401),
        ("crews/tides/../../crews/moon", 301),
    ],
)
def test_no_spelling_of_a_path_escapes_the_scope(
    scoped_registry: ScopedRegistry, path: str, expected: int
) -> None:
    """The registry checks the name that it actually uses."""
    digest = push(repository(scoped_registry, "crews/moon", "crews/moon"))
    address = scoped_registry.registry.address
    auth = json.loads(scoped_registry.auth("crews/tides"))["auths"][address]["auth"]
    client = registry_client.RegistryClient(f"http://{address}", auth)
    status, location = client.call("POST", f"/v2/{path}/blobs/uploads/", b"")
    assert (status, location) == (expected, "/v2/crews/moon/blobs/uploads/" if expected == 301 else "")
    for method, target in (("PUT", "manifests/one"), ("DELETE", f"manifests/{digest}")):
        client.call(method, f"/v2/{path}/{target}", b"{}")
    assert repository(scoped_registry, "crews/moon").digest("one") == digest
