"""Fetches from a real git server and from a fake of the API's uploads."""

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

from build.api_client import InternalApiClient
from build.errors import BuildRefused, InfrastructureError
from build.logs import BuildLog
from build.settings import ArchiveSource, FetchNetworks, GitSource, SourceLimits
from build.source.fetch_archive import fetch_archive
from build.source.fetch_git import fetch_git
from build.source.tree import CheckedSourceTree
from egress.git.credentials import GitCredentials
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

HERE = FetchNetworks(("127.0.0.0/8",))
ANONYMOUS = GitCredentials()


def fetch(
    source: GitSource,
    credentials: GitCredentials = ANONYMOUS,
    network: FetchNetworks = HERE,
    limits: SourceLimits | None = None,
) -> CheckedSourceTree:
    log = BuildLog(out=io.StringIO())
    return fetch_git(source, credentials, network, limits or SourceLimits(), log).tree


def refusal(
    source: GitSource, credentials: GitCredentials = ANONYMOUS, network: FetchNetworks = HERE, **limits: int
) -> BuildRefused:
    with pytest.raises(BuildRefused) as raised:
        fetch(source, credentials, network, SourceLimits(**limits))
    return raised.value


def test_commit_and_path(git: GitServer, demo: GitRepository) -> None:
    old = demo.commit(
        {"crew/main.py": "1", "crew/bin/run": "2", "other": "3"}, "old", executable=("crew/bin/run",)
    )
    new = demo.commit({"crew/main.py": "new"}, "new")
    tree = fetch(GitSource(git.url("demo"), old, "crew/"))
    assert dict(tree) == {"main.py": b"1", "bin/run": b"2"}
    assert tree.entry("bin/run").executable
    assert dict(fetch(GitSource(git.url("demo"), new))) == {"crew/main.py": b"new"}


@pytest.mark.parametrize("path", ["", "crew"])
def test_the_subject_of_the_commit_is_kept(git: GitServer, demo: GitRepository, path: str) -> None:
    commit = demo.commit({"crew/main.py": "1"}, "Ask for tides\n\nThey come twice a day.")
    source = GitSource(git.url("demo"), commit, path)
    log = BuildLog(out=io.StringIO())
    assert fetch_git(source, ANONYMOUS, HERE, SourceLimits(), log).subject == "Ask for tides"


def test_server_without_commit_ids(git: GitServer, demo: GitRepository) -> None:
    demo.configure("uploadpack.allowReachableSHA1InWant", "false")
    old = demo.commit({"main.py": "1"}, "old")
    new = demo.commit({"main.py": "2"}, "new")
    assert dict(fetch(GitSource(git.url("demo"), new))) == {"main.py": b"2"}
    assert dict(fetch(GitSource(git.url("demo"), old))) == {"main.py": b"1"}


@pytest.mark.parametrize(
    ("commit", "path", "part"),
    [
        ("0" * 40, "", "has no commit 0000"),
        ("main", "", "not a commit id"),
        ("", "gone", "no directory 'gone'"),
    ],
)
def test_missing_commit_or_path(
    git: GitServer, demo: GitRepository, commit: str, path: str, part: str
) -> None:
    sha = demo.commit({"main.py": "1"}, "one")
    error = refusal(GitSource(git.url("demo"), commit or sha, path))
    assert error.reason == "GitNotFound"
    assert part in error.message
    assert error.hint


def test_missing_repository(git: GitServer) -> None:
    error = refusal(GitSource(git.url("gone"), "0" * 40))
    assert error.reason == "GitNotFound"
    assert "is not a git repository" in error.message


def test_credentials(git: GitServer, demo: GitRepository) -> None:
    source = GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one"))
    git.username, git.password = "crew", "right"
    assert refusal(source).reason == "GitAuthFailed"
    error = refusal(source, GitCredentials("crew", "wrong"))
    assert error.reason == "GitAuthFailed"
    assert "wrong" not in error.message
    assert len(fetch(source, GitCredentials("crew", "right"))) == 1
    git.bearer = "token"
    assert len(fetch(source, GitCredentials(bearer="token"))) == 1
    assert refusal(source, GitCredentials(bearer="other")).reason == "GitAuthFailed"


def test_no_connection_to_a_forbidden_address(git: GitServer, demo: GitRepository) -> None:
    source = GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one"))
    error = refusal(source, network=FetchNetworks())
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
def test_unsupported_urls(url: str) -> None:
    error = refusal(GitSource(url, "0" * 40))
    assert error.reason == "GitNotFound"
    assert "secret@" not in error.message and error.hint


def test_link_becomes_a_copy(git: GitServer, demo: GitRepository) -> None:
    sha = demo.commit({"a/main.py": "1"}, "one", links={"b/link.py": "../a/main.py", "again.py": "b/link.py"})
    assert dict(fetch(GitSource(git.url("demo"), sha))) == {
        "a/main.py": b"1",
        "b/link.py": b"1",
        "again.py": b"1",
    }


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "gone", ".", "loop"])
def test_link_without_target_is_left_out(git: GitServer, demo: GitRepository, target: str) -> None:
    sha = demo.commit({"a/main.py": "1"}, "one", links={"loop": target})
    assert dict(fetch(GitSource(git.url("demo"), sha))) == {"a/main.py": b"1"}


def test_hooks_filters_and_attributes_are_ignored(
    git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    files = {
        ".gitattributes": "* filter=run diff=run text eol=crlf export-ignore\n*.big filter=lfs\n",
        ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::touch {mark}\n\tupdate = !touch {mark}\n',
        ".gitconfig": f'[filter "run"]\n\tsmudge = touch {mark}\n',
        "hooks/post-checkout": f"#!/bin/sh\ntouch {mark}\n",
        "a.txt": "one\ntwo\n",
        "data.big": "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
    }
    tree = fetch(GitSource(git.url("demo"), demo.commit(files, "one", executable=("hooks/post-checkout",))))
    assert {path: data.decode() for path, data in tree.items()} == files
    assert not mark.exists()


def test_limits_of_git_sources(git: GitServer, demo: GitRepository) -> None:
    import random

    noise = random.Random(1).randbytes(300_000)
    sha = demo.commit({"a": noise, "b": "1", "c": "2"}, "one")
    source = GitSource(git.url("demo"), sha)
    assert refusal(source, entries=2).reason == "ContextTooLarge"
    assert refusal(source, unpacked_bytes=200_000).reason == "ContextTooLarge"
    assert refusal(source, context_bytes=100_000).reason == "ContextTooLarge"


def test_unreachable_server_is_an_infrastructure_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(InfrastructureError):
            fetch(GitSource(f"http://127.0.0.1:{closed.getsockname()[1]}/x.git", "0" * 40))


def certificate(directory: Path) -> Path:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", "key", "-out", "cert"],
        cwd=directory,
        check=True,
        capture_output=True,
        timeout=60,
    )
    both = directory / "both.pem"
    both.write_text((directory / "key").read_text() + (directory / "cert").read_text())
    return both


def test_private_ca(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    with GitServer(tmp_path / "git", certificate=pem) as server:
        sha = server.create("demo").commit({"main.py": "1"}, "one")
        source = GitSource(server.url("demo", "localhost"), sha)
        error = refusal(source)
        assert error.reason == "GitAuthFailed"
        assert "ca.crt" in error.hint
        ca = (tmp_path / "cert").read_text()
        assert dict(fetch(source, GitCredentials(ca=ca))) == {"main.py": b"1"}
        refused = refusal(source, GitCredentials(ca=ca), FetchNetworks())
        assert "localhost is at" in refused.message


class _UploadsHandler(http.server.BaseHTTPRequestHandler):
    responses: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
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
def uploads() -> Iterator[tuple[type[_UploadsHandler], InternalApiClient]]:
    handler = type("Uploads", (_UploadsHandler,), {"responses": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield handler, InternalApiClient(f"http://127.0.0.1:{server.server_address[1]}", "token")
    server.shutdown()
    server.server_close()


def packed(*names: str) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in names or ("main.py",):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return gzip.compress(plain.getvalue(), mtime=0)


def test_upload_is_retried(
    uploads: tuple[type[_UploadsHandler], InternalApiClient],
) -> None:
    handler, api = uploads
    handler.responses = [(503, b""), (200, packed())]
    source = ArchiveSource("upl_1", hashlib.sha256(packed()).hexdigest())
    assert list(fetch_archive(source, api, SourceLimits(), BuildLog(out=io.StringIO()))) == ["main.py"]


def test_upload_without_sha256_is_read(uploads: tuple[type[_UploadsHandler], InternalApiClient]) -> None:
    handler, api = uploads
    handler.responses = [(200, packed())]
    source = ArchiveSource("upl_1")
    assert list(fetch_archive(source, api, SourceLimits(), BuildLog(out=io.StringIO()))) == ["main.py"]


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (("crew-1f7a7a4/crew.toml", "crew-1f7a7a4/src/a.py"), ["crew.toml", "src/a.py"]),
        (("crew/crew.toml", "__MACOSX/crew/._crew.toml"), ["crew.toml"]),
        (("crew/a/one.py",), ["a/one.py"]),
        (("crew/one.py", "other/two.py"), ["crew/one.py", "other/two.py"]),
        (("crew/one.py", "two.py"), ["crew/one.py", "two.py"]),
    ],
)
def test_an_archive_is_read_below_its_only_directory(
    uploads: tuple[type[_UploadsHandler], InternalApiClient], names: tuple[str, ...], paths: list[str]
) -> None:
    handler, api = uploads
    handler.responses = [(200, packed(*names))]
    source = ArchiveSource("upl_1", hashlib.sha256(packed(*names)).hexdigest())
    output = io.StringIO()
    assert list(fetch_archive(source, api, SourceLimits(), BuildLog(out=output))) == paths
    assert ("all files are in crew" in output.getvalue()) == (list(names) != paths)


@pytest.mark.parametrize(
    ("crew", "file", "path"),
    [
        ("src/hello.py", "src/hello.py", "src/hello.py"),
        ("src/hello.py:agent", "src/hello.py", "src/hello.py"),
        ("src.hello:agent", "src/hello.py", "src/hello.py"),
        ("src:agent", "src/__init__.py", "src/__init__.py"),
        ("hello.py", "src/hello.py", "hello.py"),
        ("src/other.py", "src/hello.py", "hello.py"),
    ],
)
def test_a_directory_that_the_entrypoint_names_is_kept(
    uploads: tuple[type[_UploadsHandler], InternalApiClient], crew: str, file: str, path: str
) -> None:
    handler, api = uploads
    handler.responses = [(200, packed(file))]
    source = ArchiveSource("upl_1", hashlib.sha256(packed(file)).hexdigest())
    assert list(fetch_archive(source, api, SourceLimits(), BuildLog(out=io.StringIO()), crew)) == [path]


@pytest.mark.parametrize(
    ("response", "limits", "reason"),
    [
        ((404, b""), SourceLimits(), "ContextInvalid"),
        ((200, b"other bytes"), SourceLimits(), "ContextInvalid"),
        ((200, packed()), SourceLimits(context_bytes=10), "ContextTooLarge"),
    ],
)
def test_invalid_upload(
    uploads: tuple[type[_UploadsHandler], InternalApiClient],
    response: tuple[int, bytes],
    limits: SourceLimits,
    reason: str,
) -> None:
    handler, api = uploads
    handler.responses = [response]
    source = ArchiveSource("upl_1", hashlib.sha256(packed()).hexdigest())
    with pytest.raises(BuildRefused) as raised:
        fetch_archive(source, api, limits, BuildLog(out=io.StringIO()))
    assert raised.value.reason == reason


def test_temporary_files_are_removed(
    git: GitServer, demo: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    fetch(GitSource(git.url("demo"), demo.commit({"main.py": "1"}, "one")))
    assert list(directory.iterdir()) == []
