"""Addresses and servers of repositories: URLs, host keys, what a name resolves to."""

import ipaddress

from egress.addresses import AddressRefused, AddressRules, resolve_allowed
from egress.git import repository_url
from egress.git.host_key import HostKeyReader
from egress.git.known_hosts import pinned_keys
from tests.fuzz.target import FuzzTarget, as_text, parts, words

RULES = AddressRules.parse(["10.9.0.0/16"], ["203.0.113.0/24"])
_FORBIDDEN = [
    ipaddress.ip_network(one) for one in ("127.0.0.0/8", "169.254.0.0/16", "203.0.113.0/24", "::1/128")
]


def url(data: bytes) -> None:
    """An address that is read has nothing odd in it; what is shown of one moves no cursor and no secret."""
    text = as_text(data)
    shown = repository_url.display_url(text)
    assert shown.isprintable() and len(shown) <= 300
    try:
        place = repository_url.parse(text)
    except ValueError as error:
        assert str(error).isprintable()
        return
    assert place.scheme in repository_url.PORTS and 0 < place.port < 65536
    assert place.host and not set(place.host) & set("@/\\ \t\r\n\0%?#")
    assert place.user == "" or place.scheme == "ssh"
    assert not place.user.startswith("-") and not place.host.startswith("-")


def address(data: bytes) -> None:
    """No spelling of an address gets past the rules."""
    host, resolved = (as_text(part) for part in parts(data, 2))
    answers = resolved.split("\n")[:8]
    try:
        allowed = resolve_allowed(host, 443, RULES, lambda *_: answers)
    except (AddressRefused, OSError, ValueError):
        return
    for text in allowed:
        found = ipaddress.ip_address(text.partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None) or found
        inside = [net for net in _FORBIDDEN if mapped.version == net.version and mapped in net]
        assert not inside, text


def host_key(data: bytes) -> None:
    """What a server says first, in pieces; the pins that a file holds."""
    listener, whole = HostKeyReader(), HostKeyReader()
    heard = [key for start in range(0, len(data), 7) if (key := listener.feed(data[start : start + 7]))]
    at_once = whole.feed(data)
    assert len(heard) <= 1
    assert (heard[0] if heard else None) == at_once
    for key in heard:
        assert key.algorithm.isprintable() and key.fingerprint.startswith("SHA256:")


def known_hosts(data: bytes) -> None:
    """Any text pins keys or none."""
    for key in pinned_keys(as_text(data), "git.example.com", 2222):
        assert key.blob


def urls() -> list[bytes]:
    """Addresses of each form, and of each trick."""
    return words(
        "https://git.example.com/team/crew.git",
        "ssh://git@git.example.com:2222/~team/crew.git",
        "http://user:word@h/x",
        "https://[::1]:80/x",
        "https://h%00/x",
        "https://h/%0a%2e%2e",
        "file:///etc/passwd",
        "ext::sh -c id",
        "ssh://-oProxyCommand=id@h/x",
        "https://h:0/x?y#z",
        "https://h\\@e/x",
        "https://0x7f.1/x",
        "https://\u2024/x",
        "git@h:x",
        "https://h:99999/",
        "https://[fe80::1%25eth0]/x",
    )


def addresses() -> list[bytes]:
    """Names with what they resolve to."""
    pairs = [
        ("a", "127.0.0.1"),
        ("a", "93.184.216.34\n203.0.113.1"),
        ("a", "::ffff:127.0.0.1"),
        ("a", "64:ff9b::7f00:1"),
        ("a", "fe80::1%eth0"),
        ("a", "2002:7f00:1::"),
        ("169.254.169.254", "169.254.169.254"),
        ("a", "10.9.1.1"),
        ("a", "0.0.0.0"),
        ("a", "0177.0.0.1"),
    ]
    return [f"{name}".encode() + b"\xff" + answer.encode() for name, answer in pairs]


def greetings() -> list[bytes]:
    """The first packets of an ssh server."""
    blob = b"\0\0\0\x0bssh-ed25519" + b"\0\0\0\x20" + b"k" * 32
    payload = b"\x1f" + len(blob).to_bytes(4, "big") + blob + b"rest"
    packet = (len(payload) + 5).to_bytes(4, "big") + b"\x04" + payload + b"\0" * 4
    kex = (10).to_bytes(4, "big") + b"\x04" + b"\x14" + b"x" * 4 + b"\0" * 4
    return [
        b"hello\r\nSSH-2.0-x\r\n" + kex + packet,
        b"SSH-2.0-x\n" + packet,
        b"SSH-\n" + b"\0" * 12,
        b"x\n" * 9,
    ]


def hosts() -> list[bytes]:
    """Lines of each form."""
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIGtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr"
    return words(
        f"[git.example.com]:2222 ssh-ed25519 {key}\n",
        f"*.example.com,!bad ssh-ed25519 {key} comment\n@revoked * ssh-ed25519 {key}\n",
        f"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-rsa {key}\n# x\n\n",
        f"@cert-authority * ssh-ed25519 {key}\n[[git ssh-ed25519 !!!\n",
    )


TARGETS = (
    FuzzTarget("git-url", ("egress",), url, urls, 256),
    FuzzTarget("address", ("egress",), address, addresses, 256),
    FuzzTarget("host-key", ("egress",), host_key, greetings, 2048),
    FuzzTarget("known-hosts", ("egress",), known_hosts, hosts, 1024),
)
