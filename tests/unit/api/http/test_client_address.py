"""The client's address: only what trusted proxies wrote counts."""

import pytest

from api.http.client_address import client_address, parse_proxies

TRUSTED = parse_proxies("10.1.0.0/16, fd00:1::/64")


@pytest.mark.parametrize(
    ("remote", "forwarded", "found"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        # Who connects directly is believed nothing.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        # A client writes entries of its own; each proxy appends.
        ("10.1.2.3", ["8.8.8.8, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["8.8.8.8", "198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["8.8.8.8, 198.51.100.1, 10.1.9.9"], "198.51.100.1"),
        ("fd00:1::7", ["2001:db8::1, 10.1.9.9"], "2001:db8::1"),
        ("10.1.2.3", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.1.2.3", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("::ffff:10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["unknown"], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1, "], "10.1.2.3"),
        ("10.1.2.3", ["10.1.7.7"], "10.1.7.7"),
        (None, ["198.51.100.1"], ""),
    ],
)
def test_the_last_hop_that_is_no_trusted_proxy(remote, forwarded, found):
    assert client_address(remote, forwarded, TRUSTED) == found


def test_no_more_entries_are_read_than_needed():
    assert (
        client_address("10.1.2.3", ["1.1.1.1," + "10.1.0.1," * 100_000 + "10.1.0.2"], TRUSTED) == "10.1.0.1"
    )
