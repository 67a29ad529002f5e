"""The caller of an Authorization header: by a key, or by the provider of its token."""

from datetime import timedelta

import pytest

from api.auth.api_keys import Keyring
from api.auth.authenticate import MAX_BEARER_LENGTH, authenticate
from api.auth.principal import Caller
from api.auth.providers import TokenProviders
from api.auth.scopes import Grants
from api.auth.settings import IdentitySettings
from api.auth.sign_in.settings import GroupEntry, SignInSettings
from tests.unit.api.auth.issuer import AUDIENCE, REPOSITORY, Issuer
from tests.unit.api.auth.reviews import reviewing, token
from tests.unit.api.conftest import NOW, key

TEXT, RECORD = key("run", projects=["demo"], plan="pro", expires_at=NOW + timedelta(hours=1))
GREATEST_HEADER = 2 * MAX_BEARER_LENGTH


class AddressIsBlocked(Exception):
    """The client's address has tried too many tokens."""


class AddressGuard:
    """A guard that counts its calls, and raises once the address is `blocked`."""

    def __init__(self) -> None:
        self.calls, self.blocked = 0, False

    async def __call__(self) -> None:
        self.calls += 1
        if self.blocked:
            raise AddressIsBlocked


async def no_key(_: str) -> None:
    return None


@pytest.mark.parametrize(
    ("header", "valid"),
    [
        (f"Bearer {TEXT}", True),
        (f"bEARER   {TEXT}", True),
        (f" Bearer {TEXT}\t", True),
        (f"Bearer {TEXT:>{GREATEST_HEADER - len('Bearer ')}}", True),
        (f"Bearer {TEXT:>{GREATEST_HEADER - len('Bearer ') + 1}}", False),
        (f"Bearer\t{TEXT}", False),
        (f"Bearer{TEXT}", False),
        (f"Basic {TEXT}", False),
        (f"Bearer {TEXT} {TEXT}", False),
        (TEXT, False),
        ("Bearer ", False),
        ("", False),
        (None, False),
    ],
    # The key is another one in each process.
    ids=lambda value: " ".join(str(value).replace(TEXT, "key").split()),
)
async def test_key_is_the_bearer_of_the_header(header, valid):
    keyring = Keyring({RECORD.key_id: RECORD}, no_key)
    caller = Caller(
        key_id=RECORD.key_id,
        grants=Grants(None, {"demo": frozenset({"read", "run"})}),
        plan="pro",
        expires_at=NOW + timedelta(hours=1),
        kind="key",
        rate_limit_key=RECORD.key_id,
        credential_id=RECORD.key_id,
    )
    found = await authenticate(keyring, TokenProviders(None, None), header, NOW, AddressGuard())
    assert found == (caller if valid else None)


async def test_issuer_of_a_token_selects_its_provider(issuer, testbed):
    await testbed.add_project("demo", {"oidc": [{"repository": REPOSITORY, "scopes": ["run"]}]})
    people = Issuer()
    await people.start()
    sign_in = SignInSettings(people.url, "console", (GroupEntry("staff", frozenset({"admin"})),))
    identity = IdentitySettings("crewyard", issuer.url, AUDIENCE)

    async def places():
        return {"demo": None}

    async with reviewing() as (reviews, kube):
        providers = TokenProviders.from_settings(
            identity, kube, testbed.store.workflows, sign_in, ("crews", "team-a"), places
        )
        guard = AddressGuard()

        async def call(text, providers=providers):
            found = await authenticate(Keyring({}, no_key), providers, f"Bearer {text}", NOW, guard)
            return None if found is None else (found.kind, found.key_id, found.token == text)

        of_workflow = issuer.token(NOW)
        of_user = people.token(NOW, sub="7", aud="console", groups=["staff"])
        assert await call(of_workflow) == ("workflow", f"workflow:{REPOSITORY}:refs/heads/main", True)
        assert await call(of_user) == ("user", "user:7", True)
        assert await call(people.token(NOW, sub="7", aud="other", groups=["staff"])) is None
        assert (guard.calls, reviews.asked) == (0, [])
        assert [await call(token()) for _ in range(2)] == [("kubernetes", "kubernetes:ci", True)] * 2
        accepted = await authenticate(Keyring({}, no_key), providers, f"Bearer {token()}", NOW, guard)
        assert accepted is not None and accepted.grants == Grants(None, {"demo": frozenset({"read"})})
        assert set(accepted.namespaces or ()) == {"crews", "team-a"}
        assert guard.calls == 1, "an accepted token is known"
        asked, guard.blocked = len(reviews.asked), True
        with pytest.raises(AddressIsBlocked):
            await call(token("other"))
        assert len(reviews.asked) == asked
        none = TokenProviders.from_settings(IdentitySettings(None, None), kube, testbed.store.workflows)
        assert [await call(text, none) for text in (of_workflow, of_user, token("other"))] == [None] * 3
    await people.server.close()
