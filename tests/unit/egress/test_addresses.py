"""Refused addresses in every spelling, and their enforcement by the relay."""

import http.server
import ipaddress
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.addresses import AddressRefused, AddressRules, resolve_allowed, system_resolver
from egress.relay.http_relay import HttpRelay

PODS = AddressRules.parse([], ["10.244.0.0/16", "fd00:10::/64"])


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("::1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::127.0.0.1", "a loopback address"),
        ("64:ff9b::7f00:1", "a loopback address"),
        ("2002:7f00:1::", "a loopback address"),
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("::", "an unspecified address"),
        ("::2", "an unspecified address"),
        ("169.254.169.254", "a link-local address"),
        ("::ffff:169.254.169.254", "a link-local address"),
        ("fe80::1", "a link-local address"),
        ("fec0::1", "a site-local address"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
        ("240.0.0.1", "a reserved address"),
        ("100.100.100.200", "denied by this installation"),
        ("168.63.129.16", "denied by this installation"),
        ("fd00:ec2::254", "denied by this installation"),
        ("10.244.3.4", "denied by this installation"),
        ("::ffff:10.244.3.4", "denied by this installation"),
        ("fd00:10::1", "denied by this installation"),
        ("10.0.0.1", "a private address"),
        ("172.31.255.254", "a private address"),
        ("192.168.1.1", "a private address"),
        ("100.64.0.1", "a private address"),
        ("198.19.0.1", "a private address"),
        ("fd12::1", "a private address"),
        ("fc00::1", "a private address"),
        ("::ffff:10.0.0.1", "a private address"),
        ("64:ff9b::c0a8:101", "a private address"),
        ("2002:a00:1::", "a private address"),
    ],
)
def test_refused(address: str, why: str) -> None:
    assert PODS.refusal_reason(ipaddress.ip_address(address), 443) == why


@pytest.mark.parametrize(
    "address",
    ["140.82.121.4", "2606:50c0:8000::153", "172.15.0.1", "172.32.0.1", "100.63.0.1", "11.0.0.1", "1.0.0.1"],
)
def test_allowed(address: str) -> None:
    assert PODS.refusal_reason(ipaddress.ip_address(address), 443) is None


def test_allowed_network_overrides_refusal() -> None:
    rules = AddressRules.parse(["127.0.0.0/8", "10.244.0.7/24", "::ffff:0:0/96"], ["10.244.3.4/16"])
    for address, why in {
        "127.0.0.1": None,
        "10.244.0.9": None,
        "10.244.1.9": "denied by this installation",
        "10.1.1.9": "a private address",
        "::1": "a loopback address",
        "::ffff:169.254.169.254": "a link-local address",
    }.items():
        assert rules.refusal_reason(ipaddress.ip_address(address), 443) == why


@pytest.mark.parametrize(
    ("allowed", "address", "ports", "refused_ports"),
    [
        ("10.1.2.3:8418", "10.1.2.3", [8418], [1, 22, 443, 8417, 8419, 65535]),
        ("10.1.2.3:1", "10.1.2.3", [1], [2, 22]),
        ("10.1.2.7/24:443-444", "10.1.2.9", [443, 444], [442, 445]),
        ("10.1.2.3:20000-65535", "10.1.2.3", [20000, 65535], [10250, 6443, 19999]),
        ("[fd00::7]:22", "fd00::7", [22], [2222]),
        ("[fd00::/64]:22", "fd00::7", [22], [2222]),
        ("fd00::/8", "fd00::7", [1, 22, 65535], []),
        ("[::1]:8080", "::1", [8080], [443]),
    ],
)
def test_allowed_ports_only(allowed: str, address: str, ports: list[int], refused_ports: list[int]) -> None:
    rules, parsed = AddressRules.parse([allowed], []), ipaddress.ip_address(address)
    assert [port for port in ports if rules.refusal_reason(parsed, port)] == []
    assert [port for port in refused_ports if not rules.refusal_reason(parsed, port)] == []
    other = parsed + 2**70 if parsed.version == 6 else parsed + 256
    assert (rules.refusal_reason(other, ports[0]) is None) == (allowed == "fd00::/8")


@pytest.mark.parametrize(
    "text",
    ["10.1.2.3:0", "10.1.2.3:65536", "10.1.2.3:9-8", "10.1.2.3:", "git:22", "fd00::1:22x", "[10.1.2.3]:2"],
)
def test_malformed_destinations(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        AddressRules.parse([text], [])


@pytest.mark.parametrize("address", ["127.0.0.1", "fe80::1%eth0"])
def test_one_forbidden_address_refuses_the_name(address: str) -> None:
    found = {("git.example.org", 443): ["140.82.121.4", address]}
    with pytest.raises(AddressRefused, match=rf"git\.example\.org is at {address}"):
        resolve_allowed("git.example.org", 443, PODS, lambda host, port: found[host, port])


@pytest.mark.parametrize(
    "spelling", ["127.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1", "localhost", "0"]
)
def test_every_spelling_of_loopback(spelling: str) -> None:
    with pytest.raises(AddressRefused):
        resolve_allowed(spelling, 80, PODS, system_resolver)


@given(st.ip_addresses(v=4))
def test_embedded_ipv4_address_is_checked(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.ip_address(f"::ffff:{address}")
    assert (PODS.refusal_reason(mapped, 443) is None) == (PODS.refusal_reason(address, 443) is None)


class _Target(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        self.server.credentials = self.headers["Authorization"]  # type: ignore[attr-defined]
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", self.server.redirect_url)  # type: ignore[attr-defined]
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello" if self.path != "/large" else bytes(1 << 20))

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def target() -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Target)
    server.requests = []  # type: ignore[attr-defined]
    server.redirect_url = ""  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(relay: HttpRelay, url: str) -> bytes:
    with urllib.request.urlopen(relay.local_url(url), timeout=60) as answer:
        return bytes(answer.read())


def test_the_relay_redirect_url_the_checked_address(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    rules = AddressRules.parse(["127.0.0.0/8"], [])
    with HttpRelay(rules, resolve=lambda host, port: ["127.0.0.1"]) as relay:
        assert fetch(relay, f"http://git.example.org:{port}/x?y=1") == b"hello"
    assert target.requests == [("/x?y=1", f"git.example.org:{port}")]  # type: ignore[attr-defined]


def test_relay_refuses_a_forbidden_address(target: http.server.ThreadingHTTPServer) -> None:
    with HttpRelay(PODS) as relay:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(relay, f"http://127.0.0.1:{target.server_address[1]}/x")
        assert relay.refused_addresses == ["127.0.0.1 is a loopback address"]
    assert target.requests == []  # type: ignore[attr-defined]


def test_a_redirect_is_checked_too(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    target.redirect_url = f"http://inner.example.org:{port}/secret"  # type: ignore[attr-defined]
    addresses = {"outer.example.org": "127.0.0.1", "inner.example.org": "127.0.0.2"}
    rules = AddressRules.parse(["127.0.0.1/32"], [])
    with HttpRelay(rules, resolve=lambda host, port: [addresses[host]]) as relay:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(relay, f"http://outer.example.org:{port}/redirect")
        assert relay.refused_addresses == ["inner.example.org is at 127.0.0.2, which is a loopback address"]
    assert [path for path, _ in target.requests] == ["/redirect"]  # type: ignore[attr-defined]


def test_changed_address_is_checked_again(
    target: http.server.ThreadingHTTPServer,
) -> None:
    port = target.server_address[1]
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    with HttpRelay(
        AddressRules.parse(["127.0.0.1/32"], []), resolve=lambda host, port: next(answers)
    ) as relay:
        assert fetch(relay, f"http://git.example.org:{port}/") == b"hello"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(relay, f"http://git.example.org:{port}/")


def test_byte_limit(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    with HttpRelay(AddressRules.parse(["127.0.0.0/8"], []), max_bytes=300_000) as relay:
        assert fetch(relay, f"http://127.0.0.1:{port}/x") == b"hello"
        assert not relay.size_exceeded
        assert len(fetch(relay, f"http://127.0.0.1:{port}/large")) < 400_000
        assert relay.size_exceeded


@pytest.mark.parametrize(
    ("host", "authorization"), [("git.example.org", "Bearer word"), ("other.example.org", None)]
)
def test_credentials_reach_their_own_server_only(
    target: http.server.ThreadingHTTPServer, host: str, authorization: str | None
) -> None:
    port = target.server_address[1]
    home = f"http://git.example.org:{port}/x.git"
    with HttpRelay(
        AddressRules.parse(["127.0.0.0/8"], []), resolve=lambda host, port: ["127.0.0.1"], repository_url=home
    ) as relay:
        request = urllib.request.Request(
            relay.local_url(f"http://{host}:{port}/x"), headers={"Authorization": "Bearer word"}
        )
        urllib.request.urlopen(request, timeout=60).close()
    assert target.credentials == authorization  # type: ignore[attr-defined]
