"""Sources fetched from a real git server and from a stand-in of the facade's uploads."""

import gzip
import hashlib
import http.server
import io
import socket
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.api_client import Facade
from build.errors import Infrastructure, Refused
from build.logs import Log
from build.settings import ArchiveSource, GitSource, Limits, Network
from build.source.fetch_archive import fetch_archive
from build.source.fetch_git import fetch_git
from build.source.tree import SourceTree
from egress.git.credentials import Access
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

HERE = Network(("127.0.0.0/8",))
NOBODY = Access()


def fetch(
    source: GitSource,
    credentials: Access = NOBODY,
    network: Network = HERE,
    limits: Limits | None = None,
) -> SourceTree:
    return fetch_git(source, credentials, network, limits or Limits(), Log(out=io.StringIO()))


def refusal(source: GitSource, credentials: Access = NOBODY, network: Network = HERE, **more: int) -> Refused:
    with pytest.raises(Refused) as raised:
        fetch(source, credentials, network, Limits(**more))
    return raised.value


def test_exactly_the_commit_and_the_path(git: GitServer, demo: GitRepository) -> None:
    old = demo.commit(
        {"crew/main.py": "1", "crew/bin/run": "2", "other": "3"}, "old", executable=("crew/bin/run",)
    )
    new = demo.commit({"crew/main.py": "new"}, "new")
    tree = fetch(GitSource(git.url("demo"), old, "crew/"))
    assert dict(tree) == {"main.py": b"1", "bin/run": b"2"}
    assert tree.entry("bin/run").executable
    assert dict(fetch(GitSource(git.url("demo"), new))) == {"crew/main.py": b"new"}


def test_a_server_that_gives_branches_only(git: GitServer, demo: GitRepository) -> None:
    demo.configure("uploadpack.allowReachableSHA1InWant", "false")
    old = demo.commit({"main.py": "1"}, "old")
    new = demo.commit({"main.py": "2"}, "new")
    assert dict(fetch(GitSource(git.url("demo"), new))) == {"main.py": b"2"}
    assert dict(fetch(GitSource(git.url("demo"), old))) == {"main.py": b"1"}


@pytest.mark.parametrize(
    ("commit", "path", "part"),
    [("0" * 40, "", "has no commit 0000"), ("main", "", "no commit id"), ("", "gone", "no directory 'gone'")],
)
def test_what_is_not_in_the_repository(
    git: GitServer, demo: GitRepository, commit: str, path: str, part: str
) -> None:
    sha = demo.commit({"main.py": "1"}, "one")
    error = refusal(GitSource(git.url("demo"), commit or sha, path))
    assert error.reason == "GitNotFound"
    assert part in error.message
    assert error.hint


def test_no_such_repository(git: GitServer) -> None:
    error = refusal(GitSource(git.url("gone"), "0" * 40))
    assert error.reason == "GitNotFound"
    assert "is no git repository" in error.message


def test_credentials(git: GitServer, demo: GitRepository) -> None:
    source = GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one"))
    git.username, git.password = "crew", "right"
    assert refusal(source).reason == "GitAuthFailed"
    error = refusal(source, Access("crew", "wrong"))
    assert error.reason == "GitAuthFailed"
    assert "wrong" not in error.message
    assert len(fetch(source, Access("crew", "right"))) == 1
    git.bearer = "token"
    assert len(fetch(source, Access(bearer="token"))) == 1
    assert refusal(source, Access(bearer="other")).reason == "GitAuthFailed"


def test_a_forbidden_address_sees_no_connection(git: GitServer, demo: GitRepository) -> None:
    source = GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one"))
    error = refusal(source, network=Network())
    assert error.reason == "GitNotFound"
    assert "127.0.0.1 is a loopback address" in error.message
    assert "CREWYARD_NET_ALLOW" in error.hint
    assert git.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "/etc",
        "ssh://git:secret@example.org/x",
        "ssh://-oProxyCommand=true@example.org/x",
        "ssh://git@-oProxyCommand=true/x",
        "git@example.org:x",
        "ext::sh -c true",
        "--upload-pack=true",
        "http://-oProxyCommand=true/x",
        "http://name:secret@example.org/x",
        "http:///x",
        "http://example.org/a b",
    ],
)
def test_addresses_that_are_not_even_tried(url: str) -> None:
    error = refusal(GitSource(url, "0" * 40))
    assert error.reason == "GitNotFound"
    assert "secret@" not in error.message and error.hint


def test_a_link_inside_becomes_a_copy(git: GitServer, demo: GitRepository) -> None:
    sha = demo.commit({"a/main.py": "1"}, "one", links={"b/link.py": "../a/main.py", "again.py": "b/link.py"})
    assert dict(fetch(GitSource(git.url("demo"), sha))) == {
        "a/main.py": b"1",
        "b/link.py": b"1",
        "again.py": b"1",
    }


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "gone", "a", "loop"])
def test_a_link_to_nowhere(git: GitServer, demo: GitRepository, target: str) -> None:
    sha = demo.commit({"a/main.py": "1"}, "one", links={"loop": target})
    error = refusal(GitSource(git.url("demo"), sha))
    assert error.reason == "ContextInvalid"
    assert "loop is a symbolic link" in error.message


def test_hooks_filters_and_attributes_do_nothing(git: GitServer, demo: GitRepository, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    files = {
        ".gitattributes": "* filter=run diff=run text eol=crlf export-ignore\n*.big filter=lfs\n",
        ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::touch {mark}\n\tupdate = !touch {mark}\n',
        ".gitconfig": f'[filter "run"]\n\tsmudge = touch {mark}\n',
        "hooks/post-checkout": f"#!/bin/sh\ntouch {mark}\n",
        "a.txt": "one\ntwo\n",
        "data.big": "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
    }
    found = fetch(GitSource(git.url("demo"), demo.commit(files, "one", executable=("hooks/post-checkout",))))
    assert {path: data.decode() for path, data in found.items()} == files
    assert not mark.exists()


def test_limits_hold_for_git(git: GitServer, demo: GitRepository) -> None:
    import random

    noise = random.Random(1).randbytes(300_000)
    sha = demo.commit({"a": noise, "b": "1", "c": "2"}, "one")
    source = GitSource(git.url("demo"), sha)
    assert refusal(source, entries=2).reason == "ContextTooLarge"
    assert refusal(source, unpacked_bytes=200_000).reason == "ContextTooLarge"
    assert refusal(source, context_bytes=100_000).reason == "ContextTooLarge"


def test_a_server_that_is_away_is_no_answer() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(Infrastructure):
            fetch(GitSource(f"http://127.0.0.1:{closed.getsockname()[1]}/x.git", "0" * 40))


def certificate(place: Path) -> Path:
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*words.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", "key", "-out", "cert"],
        cwd=place,
        check=True,
        capture_output=True,
        timeout=60,
    )
    both = place / "both.pem"
    both.write_text((place / "key").read_text() + (place / "cert").read_text())
    return both


def test_an_authority_of_ones_own(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    with GitServer(tmp_path / "git", certificate=pem) as server:
        sha = server.create("demo").commit({"main.py": "1"}, "one")
        source = GitSource(server.url("demo", "localhost"), sha)
        error = refusal(source)
        assert error.reason == "GitAuthFailed"
        assert "ca.crt" in error.hint
        ca = (tmp_path / "cert").read_text()
        assert dict(fetch(source, Access(ca=ca))) == {"main.py": b"1"}
        refused = refusal(source, Access(ca=ca), Network())
        assert "localhost is at" in refused.message


class _Uploads(http.server.BaseHTTPRequestHandler):
    answers: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        allowed = (
            self.headers["Authorization"] == "Bearer token" and self.path == "/internal/v1/uploads/upl_1"
        )
        self.send_response(status if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def uploads() -> Iterator[tuple[type[_Uploads], Facade]]:
    handler = type("Uploads", (_Uploads,), {"answers": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield handler, Facade(f"http://127.0.0.1:{server.server_address[1]}", "token")
    server.shutdown()
    server.server_close()


def packed() -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        header = tarfile.TarInfo("main.py")
        archive.addfile(header, io.BytesIO())
    return gzip.compress(plain.getvalue(), mtime=0)


def test_an_upload_survives_a_restart_of_the_service(uploads: tuple[type[_Uploads], Facade]) -> None:
    handler, facade = uploads
    handler.answers = [(503, b""), (200, packed())]
    source = ArchiveSource("upl_1", hashlib.sha256(packed()).hexdigest())
    assert list(fetch_archive(source, facade, Limits(), Log(out=io.StringIO()))) == ["main.py"]


@pytest.mark.parametrize(
    ("answer", "limits", "reason"),
    [
        ((404, b""), Limits(), "ContextInvalid"),
        ((200, b"other bytes"), Limits(), "ContextInvalid"),
        ((200, packed()), Limits(context_bytes=10), "ContextTooLarge"),
    ],
)
def test_an_upload_that_cannot_be_used(
    uploads: tuple[type[_Uploads], Facade], answer: tuple[int, bytes], limits: Limits, reason: str
) -> None:
    handler, facade = uploads
    handler.answers = [answer]
    source = ArchiveSource("upl_1", hashlib.sha256(packed()).hexdigest())
    with pytest.raises(Refused) as raised:
        fetch_archive(source, facade, limits, Log(out=io.StringIO()))
    assert raised.value.reason == reason


def test_nothing_is_left_behind(
    git: GitServer, demo: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    fetch(GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one")))
    assert list(place.iterdir()) == []
