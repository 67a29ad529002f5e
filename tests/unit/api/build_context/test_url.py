"""Parsing of build context URLs; invalid ones are rejected before any DNS lookup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from api.build_context.url import AllowedHost, ContextUrlRefused, parse_hosts, parse_url, resolve_redirect

HOSTS = parse_hosts("github.com, files.example.com:8443, xn--bcher-kva.example, 127.0.0.1:8080, [::1]:8080")


def test_parse_hosts():
    assert AllowedHost("github.com", None) in HOSTS and AllowedHost("files.example.com", 8443) in HOSTS
    assert parse_hosts("") == parse_hosts(" , ") == frozenset()
    assert parse_hosts("GitHub.com") == {AllowedHost("github.com", None)}


@pytest.mark.parametrize(
    "text",
    ["https://github.com", "*", "*.example.com", "a b", "a/b", "a@b", "a:0", "a:99999", "a:", "a..b", "-a",
     "a.",
     "127.1", "0x7f.1", "2130706433", "127.0.0.01", "[::0:1]", "[::1", "büch.er", "a_b"],
)  # fmt: skip
def test_invalid_host_is_named(text):
    with pytest.raises(ValueError, match="is not a host; write for example"):
        parse_hosts(f"github.com,{text}")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://github.com/a/b.tar.gz?x=1&y=%20", "https://github.com/a/b.tar.gz?x=1&y=%20"),
        ("HTTPS://GitHub.COM", "https://github.com/"),
        ("https://github.com:443/a", "https://github.com/a"),
        ("http://github.com:80?x", "http://github.com/?x"),
        ("https://files.example.com:8443/a", "https://files.example.com:8443/a"),
        ("https://xn--bcher-kva.example/a", "https://xn--bcher-kva.example/a"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
    ],
)
def test_url_is_normalized(address, url):
    assert parse_url(address, HOSTS).url == url


REFUSED = [
    # other schemes and invalid ones
    "file:///etc/passwd", "ext::sh -c id", "gopher://github.com/", "ftp://github.com/", "github.com/a",
    "//github.com/a",
    "https:/github.com", "https:github.com", "https:///github.com", "", "javascript:1",
    "ssh://github.com/a", "data:,a",
    "http+unix://github.com/", "HTTPSS://github.com",
    # other hosts, also with a common part of the name
    "https://github.com.evil.example/", "https://evil.example/github.com", "https://evilgithub.com/",
    "https://evil.example?github.com/", "https://evil.example#github.com/", "https://github.com.",
    "https://.github.com/", "https://github..com/",
    # users, passwords and backslashes, which parsers read differently
    "https://github.com@evil.example/", "https://evil.example@github.com/", "https://a:b@github.com/",
    "https://github.com:80@evil.example/", "https://evil.example\\@github.com/",
    "https://github.com\\.evil.example/",
    "https:\\\\github.com/", "https://github.com\\a", "https://github.com%2f@evil.example/",
    "https://github.com%00/",
    "https://git\thub.com/", "https://github.com /", " https://github.com/",
    "https://github.com/\r\nHost: evil",
    "https://github.com/#a", "https://github.com/\x00",
    # ports
    "https://github.com:8443/", "https://github.com:22/", "https://github.com:0/", "https://github.com:/",
    "https://github.com:443443/", "https://github.com:+443/", "https://github.com:0443/",
    "https://github.com:4 43/",
    "https://files.example.com/", "https://files.example.com:443/", "http://github.com:443/",
    # loopback addresses in non-canonical spellings
    "http://127.1:8080/", "http://0x7f.1:8080/", "http://0x7f000001:8080/", "http://2130706433:8080/",
    "http://017700000001:8080/", "http://0177.0.0.1:8080/", "http://127.0.0.01:8080/",
    "http://127.0.0.1.:8080/",
    "http://127.0.0.1/", "http://localhost:8080/", "http://[::ffff:127.0.0.1]:8080/",
    "http://[0:0:0:0:0:0:0:1]:8080/",
    "http://[::1%25lo]:8080/", "http://[::1]/", "http://0:8080/", "http://[::]:8080/",
    "http://169.254.169.254/",
    # IDN in Unicode form, and characters that normalize to dots or letters
    "https://bücher.example/", "https://github。com/", "https://ｇithub.com/", "https://gıthub.com/",
    "https://xn--bcher-kva.example.evil/",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_other_urls_are_rejected_before_any_lookup(address):
    with pytest.raises(ContextUrlRefused):
        parse_url(address, HOSTS)


# Browsers and urljoin read these as paths of the same server.
SAME_SERVER = {
    "https:/github.com": "https://files.example.com:8443/github.com",
    "https:github.com": "https://files.example.com:8443/github.com",
    "https:///github.com": "https://files.example.com:8443/github.com",
}


@pytest.mark.parametrize("location", SAME_SERVER)
def test_redirect_without_host_stays_on_the_server(location):
    assert location in REFUSED
    begin = parse_url("https://files.example.com:8443/a", HOSTS)
    assert resolve_redirect(begin, location, HOSTS).url == SAME_SERVER[location]


@pytest.mark.parametrize(
    "location",
    [one for one in REFUSED if one.startswith(("http", "HTTP", "file", "ext")) and one not in SAME_SERVER],
)
def test_redirect_is_parsed_strictly(location):
    with pytest.raises(ContextUrlRefused):
        resolve_redirect(parse_url("http://127.0.0.1:8080/a", HOSTS), location, HOSTS)


def test_redirect_targets():
    begin = parse_url("https://github.com/a/b?x", HOSTS)
    assert resolve_redirect(begin, "c", HOSTS).url == "https://github.com/a/c"
    assert resolve_redirect(begin, "/c?y", HOSTS).url == "https://github.com/c?y"
    assert (
        resolve_redirect(begin, "//files.example.com:8443/c", HOSTS).url == "https://files.example.com:8443/c"
    )
    with pytest.raises(ContextUrlRefused, match="from https to http"):
        resolve_redirect(begin, "http://github.com/", HOSTS)
    with pytest.raises(ContextUrlRefused):
        resolve_redirect(begin, "http://[::1", HOSTS)


@given(st.text(st.characters(codec="ascii"), max_size=12), st.sampled_from(["https://", "http://", "//", ""]))
def test_parsed_url_means_the_same_host_to_the_http_client(rest, scheme):
    for text in (f"{scheme}github.com{rest}", f"{scheme}{rest}github.com/", f"{scheme}github.com/{rest}"):
        try:
            place = parse_url(text, HOSTS)
        except ContextUrlRefused:
            continue
        url = URL(place.url, encoded=True)
        assert (url.scheme, url.host, url.port) == (place.scheme, place.host, place.port)
        assert place.host == "github.com" and url.user is None and url.password is None
