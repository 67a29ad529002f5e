"""Repositories read by ssh from a real sshd, by the build and by the controller."""

import io
from collections.abc import AsyncIterator, Iterator

import pytest

from build.errors import Refused
from build.logs import Log
from build.settings import GitSource, Limits, Network
from build.source.fetch_git import fetch_git
from controller.git import lister
from controller.git.fetch_pool import Fetches
from controller.git.lister import Listings
from controller.git.repository import GitProblem, Head, Remote
from egress.git.credentials import Access
from tests.testbed.listeners import listening
from tests.testbed.ssh_server import SshServer

HERE = Network(("127.0.0.0/8",))


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[SshServer]:
    place = tmp_path_factory.mktemp("ssh")
    with SshServer(place, kinds=("ed25519", "ecdsa", "rsa")) as running:
        yield running


@pytest.fixture(scope="module")
def commit(server) -> str:
    return server.create("crew").commit({"a/main.py": "1", "b": "2"}, "A subject\n\nand more")


@pytest.fixture
async def listings() -> AsyncIterator[Listings]:
    made = Listings(HERE.allow, ())
    yield made
    await made.close()


def build(url: str, commit: str, access: Access, network: Network = HERE) -> dict[str, bytes]:
    return dict(fetch_git(GitSource(url, commit, "a"), access, network, Limits(), Log(out=io.StringIO())))


def refusal(url: str, commit: str, access: Access, network: Network = HERE) -> Refused:
    with pytest.raises(Refused) as raised:
        build(url, commit, access, network)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "form", "host"),
    [("ed25519", "", "ed25519"), ("rsa", "", "ecdsa"), ("ecdsa", "", "rsa"), ("rsa", "PEM", "ed25519")],
)
def test_keys_of_every_kind_open_it_whichever_host_key_is_pinned(server, commit, kind, form, host):
    key = server.identity(kind, form)
    # Secrets lose the last line's end, or have been through an editor of another system.
    access = Access(identity=key.strip().replace("\n", "\r\n"), known_hosts=server.known_hosts(host))
    assert build(server.url("crew"), commit, access) == {"main.py": b"1"}


async def test_the_controller_lists_and_fetches(server, commit, listings):
    remote = Remote(server.url("crew"), identity=server.identity(), known_hosts=server.known_hosts())
    head = await listings.head(remote, {"branch": "main"}, 30)
    assert head == Head("refs/heads/main", commit)
    fetches = Fetches(HERE.allow, (), 1 << 20)
    found = await fetches.commit(remote, head, "a", 30)
    await fetches.close()
    assert (found.subject, len(found.tree)) == ("A subject", 40)
    with pytest.raises(GitProblem) as missing:
        await listings.head(remote, {"branch": "none"}, 30)
    assert missing.value.reason == "BranchNotFound" and "main" in missing.value.message


def test_a_branch_that_moved_on_and_a_commit_that_was_pushed_away(server):
    repository = server.create("moving")
    access = Access(identity=server.identity(), known_hosts=server.known_hosts())
    old = repository.commit({"a/main.py": "old"}, "old")
    new = repository.commit({"a/main.py": "new"}, "new")
    repository.configure("uploadpack.allowReachableSHA1InWant", "false")
    # Not given by its id: found in the history of the branches.
    assert build(server.url("moving"), old, access) == {"main.py": b"old"}
    repository.reset(old)
    error = refusal(server.url("moving"), new, access)
    assert error.reason == "GitNotFound" and new in error.message and "forced push" in error.hint


@pytest.mark.parametrize(
    ("more", "reason", "words"),
    [
        ({"identity": ""}, "GitAuthFailed", ["identity"]),
        ({"identity": "none of those"}, "GitAuthFailed", ["cannot be read", "passphrase"]),
        ({"identity": "stranger"}, "GitAuthFailed", ["did not take the key"]),
        ({"identity": "encrypted"}, "GitAuthFailed", ["passphrase"]),
        ({"known_hosts": ""}, "HostKeyUnknown", ["ssh-keyscan -p", "known_hosts", "SHA256:"]),
        ({"known_hosts": "other"}, "HostKeyMismatch", ["ssh-keyscan -p", "not the one in known_hosts"]),
    ],
)
async def test_what_is_refused_is_told_with_the_next_step(server, commit, listings, more, reason, words):
    names = {
        "stranger": server.identity(admit=False),
        "encrypted": server.identity(passphrase="a passphrase"),
    }
    key = server.known_hosts().split()[2]
    names["other"] = server.known_hosts().replace(key, key[:-4] + "AAAA")
    given = {name: names.get(value, value) for name, value in more.items()}
    access = {"identity": server.identity(), "known_hosts": server.known_hosts(), **given}
    with pytest.raises(GitProblem) as problem:
        await listings.head(Remote(server.url("crew"), **access), {}, 30)
    assert (problem.value.reason, problem.value.passing) == (reason, False)
    assert [word for word in words if word not in problem.value.message] == []
    error = refusal(server.url("crew"), commit, Access(**access))
    assert error.reason == "GitAuthFailed"
    for text in (problem.value.message, error.message, error.hint):
        assert "PRIVATE KEY" not in text and "none of those" not in text


async def test_the_fingerprint_is_that_of_ssh_keygen(server, listings):
    remote = Remote(server.url("crew"), known_hosts=server.known_hosts().replace("AAAA", "AAAB", 1))
    with pytest.raises(GitProblem) as problem:
        await listings.head(remote, {}, 30)
    shown = [
        kind for kind in ("ed25519", "ecdsa", "rsa") if server.fingerprint(kind) in problem.value.message
    ]
    assert len(shown) == 1


async def test_a_server_with_another_key_gets_no_key_of_ours(tmp_path, listings):
    with SshServer(tmp_path / "ssh") as server:
        server.create("crew").commit({"a": "1"}, "one")
        remote = Remote(server.url("crew"), identity=server.identity(), known_hosts=server.known_hosts())
        await listings.head(remote, {}, 30)
        server.change_host_keys()
        with pytest.raises(GitProblem) as problem:
            await listings.head(remote, {}, 30)
        assert problem.value.reason == "HostKeyMismatch"
        assert server.fingerprint() in problem.value.message
        assert server.log.read_text().count("Accepted publickey") == 1


def test_no_repository_and_no_git(server, tmp_path):
    access = Access(identity=server.identity(), known_hosts=server.known_hosts())
    error = refusal(server.url("none"), "0" * 40, access)
    assert error.reason == "GitNotFound" and "no git repository" in error.message
    with SshServer(tmp_path / "other", command="echo hello") as talker:
        access = Access(identity=talker.identity(), known_hosts=talker.known_hosts())
        assert refusal(talker.url("x"), "0" * 40, access).reason == "GitNotFound"


def test_a_forbidden_address_sees_no_connection(server, commit):
    access = Access(identity=server.identity(), known_hosts=server.known_hosts())
    # No sshd, whose log still tells of earlier visitors.
    with listening() as there:
        error = refusal(f"ssh://root@127.0.0.1:{there.port}/crew.git", commit, access, Network())
    assert "127.0.0.1 is a loopback address" in error.message and "CREWYARD_NET_ALLOW" in error.hint
    assert there.visits == 0


async def test_a_child_is_kept_for_its_own_host_and_so_many_questions(server, commit, listings, monkeypatch):
    monkeypatch.setattr(lister, "QUESTIONS", 3)
    access = {"identity": server.identity(), "known_hosts": server.known_hosts()}
    remote, children = Remote(server.url("crew"), **access), []
    for _ in range(4):
        await listings.head(remote, {}, 30)
        kept = listings._kept.get(remote.host)
        children.append(kept and kept[0])
    one, same, none, new = children
    assert one is same and one.asked == 3 and none is None and not one.alive
    assert new is not one and new.alive
    with pytest.raises(GitProblem):
        await listings.head(Remote(server.url("crew", "localhost"), **access), {}, 30)
    assert listings._kept[remote.host][0] is new and new.asked == 1
    await listings.close()
    assert not new.alive and listings._kept == {}


async def test_a_slow_server_is_left_in_time_and_its_child_ends(tmp_path, listings):
    with SshServer(tmp_path / "ssh", command="sleep 60") as server:
        remote = Remote(server.url("x"), identity=server.identity(), known_hosts=server.known_hosts())
        with pytest.raises(GitProblem) as problem:
            await listings.head(remote, {}, 2)
        assert (problem.value.reason, problem.value.passing) == ("Unreachable", True)
        assert listings._kept == {}
