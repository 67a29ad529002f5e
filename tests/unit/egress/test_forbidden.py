"""Nothing connects to a forbidden address, however it is spelled, redirected to or resolved."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from build.settings import GitSource
from build.source.git_failure import GitFetchFailed
from build.source.git_remote import fetch_commit
from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind
from tests.testbed.listeners import Listener, listening

RULES = AddressRules.parse([], ["10.244.0.0/16", "10.96.0.0/12", "fd00:10::/64"])
_LOOPBACK = (
    "127.0.0.1 127.0.0.1. 127.1 127.0.1 0x7f.1 0x7f.0.0.1 0x7f000001 2130706433 017700000001 "
    "0177.0.0.1 0177.0x0.0.1 127.000.000.001 127.0.0.2 127.255.255.254 localhost LOCALHOST LocalHost. "
    "localhost. 0 0.0.0.0 0x0 00000000000 [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [::ffff:127.0.0.1] "
    "[::ffff:7f00:1] [::ffff:0:0] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] "
    "[2002:7f00:0001::1]"
)
_OTHER = (
    "169.254.169.254 169.254.43518 0xa9fea9fe 2852039166 0251.0376.0251.0376 [::ffff:169.254.169.254] "
    "[::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::] [fe80::1] [fec0::1] [fd00:ec2::254] "
    "[fd20:ce::254] 100.100.100.200 168.63.129.16 192.0.0.192 169.254.170.2 10.244.3.4 0x0af40304 "
    "10.244.772 183763716 [::ffff:10.244.3.4] [64:ff9b::af4:304] 10.96.0.1 10.96.0.10 [fd00:10::1] "
    "224.0.0.1 239.255.255.250 [ff02::1] 255.255.255.255 240.0.0.1"
)
LOOPBACK, ELSEWHERE = _LOOPBACK.split(), _OTHER.split()


@pytest.fixture(scope="module")
def listener():
    with listening("::") as made:
        yield made


def failure_kind(url: str, place: Path, rules: AddressRules = RULES, **limits: object) -> GitErrorKind:
    source = GitSource(url, "a" * 40)
    with pytest.raises(GitFetchFailed) as failed:
        fetch_commit(source, GitCredentials(bearer="word", identity="x"), rules, 1 << 20, place, **limits)
    return failed.value.failure.kind


@pytest.mark.parametrize("scheme", ["http", "https", "ssh"])
def test_loopback_is_refused_in_every_spelling(listener, tmp_path, scheme):
    # The listener accepts connections.
    with socket.create_connection(("127.0.0.1", listener.port)):
        pass
    for number, host in enumerate(LOOPBACK):
        found = failure_kind(f"{scheme}://{host}:{listener.port}/x.git", tmp_path / str(number))
        assert found in (GitErrorKind.ADDRESS_REFUSED, GitErrorKind.HOST_NOT_FOUND), host
    assert listener.visits == 1
    listener.visits = 0


@pytest.mark.parametrize("host", ELSEWHERE)
def test_metadata_pods_and_services_are_refused(tmp_path, host):
    for scheme in ("http", "ssh"):
        assert failure_kind(f"{scheme}://{host}/x.git", tmp_path / scheme) is GitErrorKind.ADDRESS_REFUSED


ONLY_LOCALHOST = AddressRules.parse(["127.0.0.1/32"], [])


@pytest.mark.parametrize(
    "location",
    [
        *(
            f"http://{host}:%d/x"
            for host in ("127.0.0.2", "127.2", "0x7f.2", "2130706434", "[::1]", "[::ffff:127.0.0.2]")
        ),
        *(
            f"{scheme}://127.0.0.2:%d/x"
            for scheme in ("ssh", "git", "ftp", "gopher", "HTTP", "https", "ext", "ws")
        ),
        *(
            "//127.0.0.2:%d/x",
            "\\\\127.0.0.2:%d\\x",
            "/\\127.0.0.2:%d/x",
            "http:127.0.0.2:%d",
            "http:///127.0.0.2:%d",
        ),
        *(
            "http://127.0.0.1:1@127.0.0.2:%d/x",
            "http://me:word@127.0.0.2:%d/x",
            "http://127.0.0.2:%d#@127.0.0.1/",
        ),
        *(
            "file:///etc/passwd?%d",
            "/../../http/127.0.0.2:%d/x",
            "http://127.0.0.2:%d\t/x",
            "hTTp://localhost:%d/",
        ),
    ],
)
def test_redirect_to_forbidden_address_is_refused(tmp_path, location):
    with listening("127.0.0.2") as inner, listening("::1", port=inner.port) as other:
        place = f"{location % inner.port}/info/refs?service=git-upload-pack"
        head = f"HTTP/1.1 302 Moved\r\nLocation: {place}\r\n"

        def redirect(visitor: socket.socket) -> None:
            visitor.recv(65536)
            visitor.sendall(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())

        with listening("127.0.0.1", redirect) as outer:
            failure_kind(f"http://127.0.0.1:{outer.port}/x", tmp_path, ONLY_LOCALHOST)
            assert outer.visits >= 1
        assert (inner.visits, other.visits) == (0, 0)


@pytest.mark.parametrize("scheme", ["http", "ssh"])
def test_each_resolution_is_checked_and_pinned(tmp_path, scheme):
    with listening("127.0.0.1") as good, listening("127.0.0.2", port=good.port) as bad:
        # The result of an earlier resolution is not reused.
        answers = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "::1"]])
        url = f"{scheme}://git.example.org:{good.port}/x.git"
        found = [
            failure_kind(url, tmp_path / str(n), ONLY_LOCALHOST, resolve=lambda host, port: next(answers))
            for n in range(4)
        ]
        assert found[1:] == [GitErrorKind.ADDRESS_REFUSED] * 3 and found[0] is GitErrorKind.UNAVAILABLE
        assert (good.visits, bad.visits) == (1, 0)


def test_proxies_of_the_environment_are_ignored(tmp_path, monkeypatch):
    with listening() as proxy, listening() as server:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        failure_kind(f"http://127.0.0.1:{server.port}/x", tmp_path, ONLY_LOCALHOST)
        assert (proxy.visits, server.visits) == (0, 1)


def recording_server(requests: list[bytes], answer: bytes) -> Listener:
    def treat(visitor: socket.socket) -> None:
        requests.append(visitor.recv(65536))
        visitor.sendall(answer)

    return Listener("127.0.0.1", treat)


@pytest.mark.parametrize(
    "access", [GitCredentials(bearer="word"), GitCredentials("me", "word"), GitCredentials(password="word")]
)
def test_credentials_are_not_sent_to_another_server(tmp_path, access):
    """A server redirects to another one, which requests credentials and gets none."""
    end = "Content-Length: 0\r\nConnection: close\r\n\r\n"
    unauthorized = f"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n{end}".encode()
    requests: list[bytes] = []
    other = recording_server(requests, unauthorized)
    there = f"http://other.example.org:{other.port}/x/info/refs?service=git-upload-pack"
    home = recording_server([], f"HTTP/1.1 302 Moved\r\nLocation: {there}\r\n{end}".encode())
    try:
        with pytest.raises(GitFetchFailed) as failed:
            source = GitSource(f"http://git.example.org:{home.port}/x", "a" * 40)
            fetch_commit(
                source, access, ONLY_LOCALHOST, 1 << 20, tmp_path, resolve=lambda host, port: ["127.0.0.1"]
            )
        assert failed.value.failure.kind is GitErrorKind.AUTH
        assert requests and not any(b"authorization" in head.lower() for head in requests)
    finally:
        home.close()
        other.close()


FETCH_SCRIPT = """
import sys
from pathlib import Path
from build.source.git_remote import GitFetchFailed, fetch_commit
from build.settings import GitSource
from egress.git.credentials import GitCredentials
from egress.addresses import AddressRules
try:
    rules = AddressRules.parse(["127.0.0.1/32"], [])
    fetch_commit(GitSource(sys.argv[1], "a" * 40), GitCredentials(), rules, 1 << 20, Path(sys.argv[2]))
except GitFetchFailed as error:
    print(error.failure.kind.name)
"""


def test_git_configuration_of_the_machine_is_ignored(tmp_path):
    """The .gitconfig of the home directory redirects every URL and sets a proxy."""
    with listening() as elsewhere, listening() as server:
        there = f"http://127.0.0.1:{elsewhere.port}"
        (tmp_path / ".gitconfig").write_text(
            f'[url "{there}/"]\n\tinsteadOf = http://127.0.0.1\n[http]\n\tproxy = {there}\n'
        )
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                FETCH_SCRIPT,
                f"http://127.0.0.1:{server.port}/x",
                str(tmp_path / "place"),
            ],
            env={
                "HOME": str(tmp_path),
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(Path(__file__).parents[3]),
            },
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.decode().strip() == "UNAVAILABLE"
        assert (elsewhere.visits, server.visits) == (0, 1)
