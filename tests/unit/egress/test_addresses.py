"""Which addresses are refused, in every spelling, and that the gate holds to it."""

import http.server
import ipaddress
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.addresses import AddressRefused, Rules, checked, system_resolver
from egress.relay.http_relay import Gate

PODS = Rules.parse([], ["10.244.0.0/16", "fd00:10::/64"])


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
    ],
)
def test_refused(address: str, why: str) -> None:
    assert PODS.objection(ipaddress.ip_address(address)) == why


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.1", "140.82.121.4", "2606:50c0:8000::153", "fd12::1"]
)
def test_let_through(address: str) -> None:
    assert PODS.objection(ipaddress.ip_address(address)) is None


def test_an_allowed_network_wins() -> None:
    rules = Rules.parse(["127.0.0.0/8", "10.244.0.0/24"], ["10.244.0.0/16"])
    assert rules.objection(ipaddress.ip_address("127.0.0.1")) is None
    assert rules.objection(ipaddress.ip_address("10.244.0.9")) is None
    assert rules.objection(ipaddress.ip_address("10.244.1.9")) == "denied by this installation"
    assert rules.objection(ipaddress.ip_address("::1")) == "a loopback address"


def test_one_forbidden_address_refuses_the_name() -> None:
    with pytest.raises(AddressRefused, match=r"git\.example\.org is at 127\.0\.0\.1"):
        checked("git.example.org", 443, PODS, lambda host, port: ["140.82.121.4", "127.0.0.1"])


@pytest.mark.parametrize(
    "spelling", ["127.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1", "localhost", "0"]
)
def test_every_spelling_of_loopback(spelling: str) -> None:
    with pytest.raises(AddressRefused):
        checked(spelling, 80, PODS, system_resolver)


@given(st.ip_addresses(v=4))
def test_an_address_carried_in_another_is_judged_alike(address: ipaddress.IPv4Address) -> None:
    inside = ipaddress.ip_address(f"::ffff:{address}")
    assert (PODS.objection(inside) is None) == (PODS.objection(address) is None)


class _Target(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers["Host"]))  # type: ignore[attr-defined]
        self.server.credentials = self.headers["Authorization"]  # type: ignore[attr-defined]
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", self.server.leads_to)  # type: ignore[attr-defined]
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
    server.seen = []  # type: ignore[attr-defined]
    server.leads_to = ""  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(gate: Gate, url: str) -> bytes:
    with urllib.request.urlopen(gate.address(url), timeout=60) as answer:
        return bytes(answer.read())


def test_the_gate_leads_to_the_checked_address(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    rules = Rules.parse(["127.0.0.0/8"], [])
    with Gate(rules, resolve=lambda host, port: ["127.0.0.1"]) as gate:
        assert fetch(gate, f"http://git.example.org:{port}/x?y=1") == b"hello"
    assert target.seen == [("/x?y=1", f"git.example.org:{port}")]  # type: ignore[attr-defined]


def test_the_gate_stays_closed_for_a_forbidden_address(target: http.server.ThreadingHTTPServer) -> None:
    with Gate(PODS) as gate:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(gate, f"http://127.0.0.1:{target.server_address[1]}/x")
        assert gate.refusals == ["127.0.0.1 is a loopback address"]
    assert target.seen == []  # type: ignore[attr-defined]


def test_a_redirect_is_checked_too(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    target.leads_to = f"http://inner.example.org:{port}/secret"  # type: ignore[attr-defined]
    places = {"outer.example.org": "127.0.0.1", "inner.example.org": "127.0.0.2"}
    rules = Rules.parse(["127.0.0.1/32"], [])
    with Gate(rules, resolve=lambda host, port: [places[host]]) as gate:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(gate, f"http://outer.example.org:{port}/redirect")
        assert gate.refusals == ["inner.example.org is at 127.0.0.2, which is a loopback address"]
    assert [path for path, _ in target.seen] == ["/redirect"]  # type: ignore[attr-defined]


def test_a_name_that_changes_its_address_is_checked_each_time(
    target: http.server.ThreadingHTTPServer,
) -> None:
    port = target.server_address[1]
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    with Gate(Rules.parse(["127.0.0.1/32"], []), resolve=lambda host, port: next(answers)) as gate:
        assert fetch(gate, f"http://git.example.org:{port}/") == b"hello"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetch(gate, f"http://git.example.org:{port}/")


def test_no_more_than_agreed_comes_in(target: http.server.ThreadingHTTPServer) -> None:
    port = target.server_address[1]
    with Gate(Rules.parse(["127.0.0.0/8"], []), most=300_000) as gate:
        assert fetch(gate, f"http://127.0.0.1:{port}/x") == b"hello"
        assert not gate.exceeded
        assert len(fetch(gate, f"http://127.0.0.1:{port}/large")) < 400_000
        assert gate.exceeded


@pytest.mark.parametrize(("host", "seen"), [("git.example.org", "Bearer word"), ("other.example.org", None)])
def test_credentials_reach_their_own_server_only(
    target: http.server.ThreadingHTTPServer, host: str, seen: str | None
) -> None:
    port = target.server_address[1]
    home = f"http://git.example.org:{port}/x.git"
    with Gate(Rules.parse(["127.0.0.0/8"], []), resolve=lambda host, port: ["127.0.0.1"], home=home) as gate:
        request = urllib.request.Request(
            gate.address(f"http://{host}:{port}/x"), headers={"Authorization": "Bearer word"}
        )
        urllib.request.urlopen(request, timeout=60).close()
    assert target.credentials == seen  # type: ignore[attr-defined]
