"""Authorization in the dev cluster's registry, and its tokens."""

import base64
import json
import stat
from pathlib import Path

import jwt
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from dev.registry import access, signing
from dev.registry.access import RegistryScope, granted, parse_scopes, password, password_matches
from dev.registry.client import token_address
from dev.registry.token_server import ISSUER, SERVICE, TOKEN_LIFETIME_SECONDS, TokenIssuer
from dev.settings import Settings

KEY = "k" * 64
PAIR = base64.b64encode(f"crews:{password(KEY, 'crews')}".encode()).decode()
PUSH = RegistryScope("repository", "crews/tides", ("pull", "push"))


@pytest.mark.parametrize(
    ("texts", "scopes"),
    [
        (["repository:crews/tides:pull,push"], [PUSH]),
        (["repository:a:pull repository:b:push,push"], [("a", ("pull",)), ("b", ("push",))]),
        (["repository:host:5000/a:pull"], [("host:5000/a", ("pull",))]),
        (["", "repository", "repository:a", "::", "repository:a:"], []),
    ],
)
def test_scopes_are_read_as_clients_write_them(
    texts: list[str], scopes: list[RegistryScope | tuple[object, ...]]
) -> None:
    expected = [
        scope if isinstance(scope, RegistryScope) else RegistryScope("repository", *scope) for scope in scopes
    ]  # type: ignore[arg-type]
    assert list(parse_scopes(texts)) == expected


@pytest.mark.parametrize(
    ("user", "repository", "actions"),
    [
        ("", "crews/tides", "pull"),
        ("crews", "crews/tides", "pull push delete"),
        ("crews/tides", "crews/tides", "pull push delete"),
        ("crews/tides", "crews/tides/cache", "pull push delete"),
        ("crews/tides", "crews/tides2", "pull"),
        ("crews/tides", "crews", "pull"),
        ("crews/tides", "crews/moon", "pull"),
        ("crews", "library/python", "pull"),
        ("crews", "crewyard/service", "pull"),
    ],
)
def test_a_user_may_push_below_its_name(user: str, repository: str, actions: str) -> None:
    asked = RegistryScope("repository", repository, ("pull", "push", "delete", "*"))
    assert [one.actions for one in granted([asked], user)] == [tuple(actions.split())]


@given(st.text(), st.text(max_size=30))
def test_anonymous_clients_may_only_pull(scope: str, name: str) -> None:
    asked = [
        *parse_scopes([scope]),
        RegistryScope("repository", name, ("push", "delete")),
        RegistryScope("registry", "catalog", ("*",)),
    ]
    assert all(one.actions == ("pull",) for one in granted(asked, ""))


def test_a_password_is_valid_for_one_name() -> None:
    assert password_matches(KEY, "crews/tides", password(KEY, "crews/tides"))
    for user, candidate in (
        ("crews/moon", password(KEY, "crews/tides")),
        ("crews", password(KEY, "crews/tides")),
        ("crews/tides", ""),
        ("crews/tides", password("x" * 64, "crews/tides")),
        ("", password(KEY, "")),
        ("crews/", password(KEY, "crews/")),
        ("crews/../crewyard", password(KEY, "crews/../crewyard")),
        ("crews/tides\n", password(KEY, "crews/tides\n")),
    ):
        assert not password_matches(KEY, user, candidate), user


def test_the_key_is_generated_once_and_private(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    drawn = access.key(settings)
    assert len(drawn) == 64 and access.key(settings) == drawn
    assert stat.S_IMODE(access.key_file(settings).stat().st_mode) == 0o600
    [(host, entry)] = json.loads(access.docker_config(settings, "crews"))["auths"].items()
    assert host == "registry.crewyard.internal:5000"
    assert base64.b64decode(entry["auth"]).decode() == f"crews:{password(drawn, 'crews')}"


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> tuple[signing.TokenSigner, Path]:
    settings = Settings(tmp_path_factory.mktemp("yard"))
    made = signing.ensure(settings)
    assert signing.ensure(settings) == made
    assert stat.S_IMODE(signing.key_file(settings).stat().st_mode) == 0o600
    return made, signing.certificate_file(settings)


def test_a_token_is_valid_for_other_implementations(signer: tuple[signing.TokenSigner, Path]) -> None:
    made, certificate = signer
    now = [1_000_000.0]
    issuer = TokenIssuer(KEY, made, lambda: now[0])
    token, since = issuer.token(
        "crews/tides", (PUSH, RegistryScope("repository", "library/python", ("push", "pull")))
    )
    public = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    read = jwt.decode(
        token, public, algorithms=["RS256"], audience=SERVICE, issuer=ISSUER,  # type: ignore[arg-type]
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )  # fmt: skip
    assert (read["sub"], read["exp"] - read["iat"], since) == (
        "crews/tides",
        TOKEN_LIFETIME_SECONDS,
        1_000_000,
    )
    assert read["access"] == [
        {"type": "repository", "name": "crews/tides", "actions": ["pull", "push"]},
        {"type": "repository", "name": "library/python", "actions": ["pull"]},
    ]
    groups = jwt.get_unverified_header(token)["kid"].split(":")
    assert [len(group) for group in groups] == [4] * 12


def test_a_recent_token_is_reused(signer: tuple[signing.TokenSigner, Path]) -> None:
    now = [1_000_000.0]
    issuer = TokenIssuer(KEY, signer[0], lambda: now[0])
    first = issuer.token("crews", (PUSH,))
    assert issuer.token("crews", (PUSH,)) == first and issuer.token("", (PUSH,)) != first
    now[0] += TOKEN_LIFETIME_SECONDS // 2
    assert issuer.token("crews", (PUSH,)) != first


def test_a_token_from_before_the_clock_stepped_back_is_not_reused(
    signer: tuple[signing.TokenSigner, Path],
) -> None:
    now = [1_000_000.0]
    issuer = TokenIssuer(KEY, signer[0], lambda: now[0])
    first = issuer.token("crews", (PUSH,))
    now[0] -= 3600
    second = issuer.token("crews", (PUSH,))
    assert second != first and second[1] == 1_000_000 - 3600
    assert issuer.token("crews", (PUSH,)) == second


@pytest.mark.parametrize(
    ("header", "user"),
    [
        ("", ""),
        (f"Basic {PAIR}", "crews"),
        (f"basic {PAIR}", "crews"),
        (f"Bearer {PAIR}", None),
        (f"Basic {base64.b64encode(b'crews:wrong').decode()}", None),
        (f"Basic {base64.b64encode(b'crews').decode()}", None),
        ("Basic !!", None),
        ("Basic", None),
        ("Basic /w==", None),
    ],
)
def test_authentication_by_password(
    signer: tuple[signing.TokenSigner, Path], header: str, user: str | None
) -> None:
    assert TokenIssuer(KEY, signer[0]).authenticate(header) == user


def test_the_token_url_of_a_challenge() -> None:
    challenge = (
        'Bearer realm="http://10.0.0.1:5001/token",service="s",scope="repository:a/b:pull,push",error="x"'
    )
    assert (
        token_address(challenge)
        == "http://10.0.0.1:5001/token?service=s&scope=repository%3Aa%2Fb%3Apull%2Cpush"
    )
    assert token_address('Basic realm="x"') == token_address("") == token_address("Bearer") == ""
