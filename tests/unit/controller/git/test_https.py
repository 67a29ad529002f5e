"""Repositories by https: names, passwords and tokens as forges give them, authorities of one's own."""

import base64
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from controller.config import Timing
from controller.git.client import Git
from controller.git.repository import GitProblem, Remote, RemoteHead
from crds.installation_limits import InstallationLimits
from tests.testbed.git_server import GitServer


class HttpsGitConfig:
    """What of the settings Git reads."""

    net_allow, net_deny, timing, limits = (
        ("127.0.0.0/8", "::1/128"),
        (),
        Timing(git_timeout=120),
        InstallationLimits(),
    )


@pytest.fixture
async def git() -> AsyncIterator[Git]:
    made = Git(HttpsGitConfig())  # type: ignore[arg-type]
    yield made
    await made.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Path:
    """A directory with `cert`, its `key`, and `both.pem`."""
    place: Path = tmp_path_factory.mktemp("authority")
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    more = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key",
        "-out",
        "cert",
    ]
    subprocess.run([*words.split(), *more], cwd=place, check=True, capture_output=True, timeout=60)
    (place / "both.pem").write_text((place / "key").read_text() + (place / "cert").read_text())
    return place


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority) -> Iterator[GitServer]:
    with GitServer(tmp_path_factory.mktemp("git"), certificate=authority / "both.pem") as made:
        made.create("crew").commit({"a": "1"}, "one")
        yield made


async def read(git: Git, server: GitServer, host: str = "localhost", **access: str) -> str:
    """The subject of the head's commit: a listing and a fetch."""
    remote = Remote(server.url("crew", host), **access)
    head = await git.head(remote, {"branch": "main"})
    return (await git.commit(remote, head, "")).subject


async def refused(git: Git, server: GitServer, host: str = "localhost", **access: str) -> GitProblem:
    with pytest.raises(GitProblem) as raised:
        await read(git, server, host, **access)
    assert not raised.value.transient
    return raised.value


async def test_private_ca_is_trusted(git, server, authority):
    ca = (authority / "cert").read_text()
    assert await read(git, server, ca=ca) == "one"
    assert await read(git, server, ca=f"a comment\n{ca}{ca}") == "one"
    unknown = await refused(git, server)
    assert unknown.reason == "CertificateInvalid" and "ca.crt" in unknown.message
    other = await refused(git, server, "127.0.0.1", ca=ca)
    assert other.reason == "CertificateInvalid" and "127.0.0.1" in other.message
    for text in ("no certificate", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", "ä"):
        odd = await refused(git, server, ca=text)
        assert odd.reason == "CertificateInvalid" and "contains no certificate" in odd.message


async def test_silent_connection_does_not_stop_others(git, server, authority):
    ca = (authority / "cert").read_text()
    with socket.create_connection(("127.0.0.1", server.port)):
        assert await read(git, server, ca=ca) == "one"


@pytest.mark.parametrize(
    ("configuration", "credentials"),
    [
        ({"username": "me", "password": "word"}, {"username": "me", "password": "word"}),
        ({"username": "me", "password": "wörd:ü"}, {"username": "me", "password": "wörd:ü"}),
        (
            {"username": "x-access-token", "password": "ghs_1"},
            {"username": "x-access-token", "password": "ghs_1"},
        ),
        ({"username": "git", "password": "glpat-1"}, {"password": "glpat-1"}),
        ({"bearer": "token"}, {"bearer": "token"}),
    ],
)
async def test_basic_and_bearer_credentials_are_sent(
    git, server, authority, monkeypatch, configuration, credentials
):
    ca = (authority / "cert").read_text()
    for name, value in configuration.items():
        monkeypatch.setattr(server, name, value)
    assert await read(git, server, ca=ca, **credentials) == "one"
    wrong = {**credentials, list(credentials)[-1]: "not-this-one"}
    for access in ({}, wrong):
        refusal = await refused(git, server, ca=ca, **access)
        assert refusal.reason == "GitAuthFailed" and "not-this-one" not in refusal.message
    head = RemoteHead("refs/heads/main", server.create("crew").head())
    with pytest.raises(GitProblem) as raised:
        await git.commit(Remote(server.url("crew", "localhost"), ca=ca, **wrong), head, "")
    assert raised.value.reason == "GitAuthFailed"


async def test_multiline_token_adds_no_header(git, server, authority, monkeypatch):
    ca = (authority / "cert").read_text()
    pair = base64.b64encode(b"me:word").decode()
    monkeypatch.setattr(server, "password", "word")
    refusal = await refused(git, server, ca=ca, bearer=f"x\r\nAuthorization: Basic {pair}")
    assert refusal.reason == "GitAuthFailed"
