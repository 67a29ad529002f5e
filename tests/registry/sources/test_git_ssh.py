"""Git over ssh from a real sshd, in the build and in the controller."""

import io
from collections.abc import AsyncIterator, Iterator

import pytest

from build.errors import BuildRefused
from build.logs import BuildLog
from build.settings import FetchNetworks, GitSource, SourceLimits
from build.source.fetch_git import fetch_git
from controller.git import lister
from controller.git.fetch_pool import FetchPool
from controller.git.lister import ListingPool
from controller.git.repository import GitProblem, Remote, RemoteHead
from egress.git.credentials import GitCredentials
from tests.testbed.listeners import listening
from tests.testbed.ssh_server import SshServer

HERE = FetchNetworks(("127.0.0.0/8",))
GIT_SECONDS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SshServer]:
    place = tmp_path_factory.mktemp("ssh")
    with SshServer(place, kinds=("ed25519", "ecdsa", "rsa")) as running:
        yield running


@pytest.fixture(scope="module")
def commit(server) -> str:
    return server.create("crew").commit({"a/main.py": "1", "b": "2"}, "A subject\n\nand more")


@pytest.fixture
async def listings() -> AsyncIterator[ListingPool]:
    pool = ListingPool(HERE.allow, ())
    yield pool
    await pool.close()


def build(url: str, commit: str, access: GitCredentials, network: FetchNetworks = HERE) -> dict[str, bytes]:
    source = GitSource(url, commit, "a")
    return dict(fetch_git(source, access, network, SourceLimits(), BuildLog(out=io.StringIO())).tree)


def refusal(url: str, commit: str, access: GitCredentials, network: FetchNetworks = HERE) -> BuildRefused:
    with pytest.raises(BuildRefused) as raised:
        build(url, commit, access, network)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "form", "host"),
    [("ed25519", "", "ed25519"), ("rsa", "", "ecdsa"), ("ecdsa", "", "rsa"), ("rsa", "PEM", "ed25519")],
)
def test_key_types_and_host_key_types(server, commit, kind, form, host):
    key = server.identity(kind, form)
    # Values in Secrets often lack the final newline or have CRLF line ends.
    access = GitCredentials(identity=key.strip().replace("\n", "\r\n"), known_hosts=server.known_hosts(host))
    assert build(server.url("crew"), commit, access) == {"main.py": b"1"}


def test_diffie_hellman_group_exchange(tmp_path):
    algorithm = "KexAlgorithms diffie-hellman-group-exchange-sha256"
    with SshServer(tmp_path / "ssh", more=algorithm) as server:
        commit = server.create("crew").commit({"a/main.py": "1"}, "one")
        access = GitCredentials(identity=server.identity(), known_hosts=server.known_hosts())
        assert build(server.url("crew"), commit, access) == {"main.py": b"1"}


async def test_controller_lists_and_fetches(server, commit, listings):
    remote = Remote(server.url("crew"), identity=server.identity(), known_hosts=server.known_hosts())
    head = await listings.head(remote, {"branch": "main"}, GIT_SECONDS)
    assert head == RemoteHead("refs/heads/main", commit)
    fetches = FetchPool(HERE.allow, (), 1 << 20)
    found = await fetches.commit(remote, head, "a", GIT_SECONDS)
    await fetches.close()
    assert (found.subject, len(found.tree)) == ("A subject", 40)
    with pytest.raises(GitProblem) as missing:
        await listings.head(remote, {"branch": "none"}, GIT_SECONDS)
    assert missing.value.reason == "BranchNotFound" and "main" in missing.value.message


def test_older_commit_and_force_pushed_commit(server):
    repository = server.create("moving")
    access = GitCredentials(identity=server.identity(), known_hosts=server.known_hosts())
    old = repository.commit({"a/main.py": "old"}, "old")
    new = repository.commit({"a/main.py": "new"}, "new")
    repository.configure("uploadpack.allowReachableSHA1InWant", "false")
    # The server does not serve it by id; it is in the history of the branches.
    assert build(server.url("moving"), old, access) == {"main.py": b"old"}
    repository.reset(old)
    error = refusal(server.url("moving"), new, access)
    assert error.reason == "GitNotFound" and new in error.message and "forced push" in error.hint


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"identity": ""}, "GitAuthFailed", ["identity"]),
        ({"identity": "none of those"}, "GitAuthFailed", ["cannot be read", "passphrase"]),
        ({"identity": "unauthorized"}, "GitAuthFailed", ["did not take the key"]),
        ({"identity": "encrypted"}, "GitAuthFailed", ["passphrase"]),
        ({"known_hosts": ""}, "HostKeyUnknown", ["ssh-keyscan -p", "known_hosts", "SHA256:"]),
        ({"known_hosts": "other"}, "HostKeyMismatch", ["ssh-keyscan -p", "not the one in known_hosts"]),
    ],
)
async def test_refusals_have_a_next_step(server, commit, listings, changes, reason, words):
    names = {
        "unauthorized": server.identity(admit=False),
        "encrypted": server.identity(passphrase="a passphrase"),
    }
    key = server.known_hosts().split()[2]
    names["other"] = server.known_hosts().replace(key, key[:-4] + "AAAA")
    changed = {name: names.get(value, value) for name, value in changes.items()}
    access = {"identity": server.identity(), "known_hosts": server.known_hosts(), **changed}
    with pytest.raises(GitProblem) as problem:
        await listings.head(Remote(server.url("crew"), **access), {}, GIT_SECONDS)
    assert (problem.value.reason, problem.value.transient) == (reason, False)
    assert [word for word in words if word not in problem.value.message] == []
    error = refusal(server.url("crew"), commit, GitCredentials(**access))
    assert error.reason == "GitAuthFailed"
    for text in (problem.value.message, error.message, error.hint):
        assert "PRIVATE KEY" not in text and "none of those" not in text


async def test_fingerprint_matches_ssh_keygen(server, listings):
    remote = Remote(server.url("crew"), known_hosts=server.known_hosts().replace("AAAA", "AAAB", 1))
    with pytest.raises(GitProblem) as problem:
        await listings.head(remote, {}, GIT_SECONDS)
    shown = [
        kind for kind in ("ed25519", "ecdsa", "rsa") if server.fingerprint(kind) in problem.value.message
    ]
    assert len(shown) == 1


async def test_server_with_a_changed_host_key_gets_no_credentials(tmp_path, listings):
    with SshServer(tmp_path / "ssh") as server:
        server.create("crew").commit({"a": "1"}, "one")
        remote = Remote(server.url("crew"), identity=server.identity(), known_hosts=server.known_hosts())
        await listings.head(remote, {}, GIT_SECONDS)
        server.change_host_keys()
        with pytest.raises(GitProblem) as problem:
            await listings.head(remote, {}, GIT_SECONDS)
        assert problem.value.reason == "HostKeyMismatch"
        assert server.fingerprint() in problem.value.message
        assert server.log.read_text().count("Accepted publickey") == 1


def test_missing_repository_and_not_git(server, tmp_path):
    access = GitCredentials(identity=server.identity(), known_hosts=server.known_hosts())
    error = refusal(server.url("none"), "0" * 40, access)
    assert error.reason == "GitNotFound" and "not a git repository" in error.message
    with SshServer(tmp_path / "other", command="echo hello") as talker:
        access = GitCredentials(identity=talker.identity(), known_hosts=talker.known_hosts())
        assert refusal(talker.url("x"), "0" * 40, access).reason == "GitNotFound"


def test_no_connection_to_a_forbidden_address(server, commit):
    access = GitCredentials(identity=server.identity(), known_hosts=server.known_hosts())
    # A plain listener, because the log of sshd has earlier connections.
    with listening() as listener:
        error = refusal(f"ssh://root@127.0.0.1:{listener.port}/crew.git", commit, access, FetchNetworks())
    assert "127.0.0.1 is a loopback address" in error.message and "CREWYARD_NET_ALLOW" in error.hint
    assert listener.visits == 0


async def test_child_is_reused_for_its_host_and_a_number_of_requests(server, commit, listings, monkeypatch):
    monkeypatch.setattr(lister, "MAX_REQUESTS_PER_CHILD", 3)
    access = {"identity": server.identity(), "known_hosts": server.known_hosts()}
    remote, children = Remote(server.url("crew"), **access), []
    for _ in range(4):
        await listings.head(remote, {}, GIT_SECONDS)
        idle = listings._idle.get(remote.host)
        children.append(idle and idle[0])
    first, reused, none, new = children
    assert first is reused and first.requests == 3 and none is None and not first.alive
    assert new is not first and new.alive
    with pytest.raises(GitProblem):
        await listings.head(Remote(server.url("crew", "localhost"), **access), {}, GIT_SECONDS)
    assert listings._idle[remote.host][0] is new and new.requests == 1
    await listings.close()
    assert not new.alive and listings._idle == {}


async def test_timeout_ends_the_child_process(tmp_path, listings):
    with SshServer(tmp_path / "ssh", command="sleep 60") as server:
        remote = Remote(server.url("x"), identity=server.identity(), known_hosts=server.known_hosts())
        with pytest.raises(GitProblem) as problem:
            await listings.head(remote, {}, 2)
        assert (problem.value.reason, problem.value.transient) == ("Unreachable", True)
        assert listings._idle == {}
