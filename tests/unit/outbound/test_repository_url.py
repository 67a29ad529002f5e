"""Addresses of repositories: what is read, what is refused before anything is looked up, what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbound.repository_url import Place, harmless, parse, shown


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://git.example.org/a/b.git", Place("https", "", "git.example.org", 443, "/a/b.git")),
        ("http://Git.Example.org:8080/a?b=c", Place("http", "", "git.example.org", 8080, "/a")),
        ("https://[2606:50c0::1]/a", Place("https", "", "2606:50c0::1", 443, "/a")),
        ("https://git_1.example.org./a", Place("https", "", "git_1.example.org.", 443, "/a")),
        ("ssh://git@git.example.org/~me/a.git", Place("ssh", "git", "git.example.org", 22, "/~me/a.git")),
        ("ssh://git.example.org:7999/a%20b", Place("ssh", "", "git.example.org", 7999, "/a%20b")),
    ],
)
def test_what_is_read(url, place):
    assert parse(url) == place


OTHERS = [
    "file",
    "ftp",
    "git",
    "ext",
    "git+ssh",
    "ssh+git",
    "rsync",
    "javascript",
    "data",
    "dict",
    "gopher",
    "ldap",
]
HOSTILE = [
    *(f"{scheme}://git.example.org/x" for scheme in OTHERS),
    *(f"{scheme}::true" for scheme in ("ext", "fd", "transport")),
    *("", "/", "/etc/passwd", "../x", ".", "~/x", "C:\\x", "git@git.example.org:x", "git.example.org/x"),
    *(
        "file:/etc",
        "file:etc",
        "ext::sh -c touch% /tmp/x",
        "--upload-pack=touch /tmp/x",
        "-oProxyCommand=touch",
    ),
    *(f"{scheme}://-oProxyCommand=touch%20x/a" for scheme in ("ssh", "http", "https")),
    *("ssh://-oProxyCommand=x@git.example.org/a", "ssh://git@-x/a", "ssh://git:word@git.example.org/a"),
    *("ssh://$(touch x)@git.example.org/a", "ssh://`x`@git.example.org/a", "ssh://a;b@git.example.org/a"),
    *("ssh://git@git.example.org", "ssh://git@git.example.org/", "ssh://git@git.example.org/a?b", "ssh:///a"),
    *("https://me:word@git.example.org/a", "https://me@git.example.org/a", "https://@git.example.org/a"),
    *("https://git.example.org@169.254.169.254/a", "https://:@git.example.org/a", "http://a@b@c/d"),
    *(
        "https:///a",
        "https://",
        "https:a",
        "https:/a",
        "http:\\\\git.example.org\\a",
        "https://\\git.example.org/a",
    ),
    *("https://git.example.org:0/a", "https://git.example.org:65536/a", "https://git.example.org:x/a"),
    *("https://git.example.org:-1/a", "https://git.example.org: 80/a", "https://[::1/a", "https://[::1]x/a"),
    *(
        "https://[fe80::1%25eth0]/a",
        "https://[v1.x]/a",
        "https://git%2eexample.org/a",
        "https://%31%32%37.0.0.1/",
    ),
    *("https://git.example.org%00.x/a", "https://.git.example.org/a", "https://git.example.org,x/a"),
    *("https://git.example.org\n/a", "https://git.example.org/a\r\nHost: x", "https://git.example.org/a\tb"),
    *(
        "https://git.example.org/a b",
        " https://git.example.org/a",
        "https://git.example.org/a\x00",
        "\nhttps://a/b",
    ),
    *("https://git.example.org/a\x1b[31m", "https://git.example.org/\u202egit", "https://gıt.example.org/a"),
    *(
        "https://①②⑦.⓪.⓪.①/a",
        "https://１２７.0.0.1/a",
        "https://git。example。org/a",
        "https://git.example.org/ä",
    ),
    *(
        "https://git.example.org/%00",
        "https://git.example.org/%0d%0aHost:%20x",
        "ssh://git@h/a%0a",
        "ssh://h/%1b",
    ),
    *(
        "https://git.example.org/%7f",
        "https://git.example.org/<a>",
        'https://git.example.org/"',
        "https://a/{b}",
    ),
    *(
        "https://git.example.org/a|b",
        "https://git.example.org/a`b`",
        "https://git.example.org/a^b",
        "HTTPS//a",
    ),
    *("https://git.example.org/a#b", "https://git.example.org#@x/", "https://" + "a" * 2048 + ".org/x"),
    *("https://git.example.org\\@x/a", "https://git.example.org;x/a", "https://$HOME/a", "https://$(x)/a"),
    *("https://git.example.org:80:80/a", "https://*/a", "https://git.example.org'/a", "//git.example.org/a"),
]


def test_there_are_a_hundred_of_them():
    assert len(set(HOSTILE)) >= 100


@pytest.mark.parametrize("url", sorted(set(HOSTILE)))
def test_what_is_not_even_looked_up(url):
    with pytest.raises(ValueError) as error:
        parse(url)
    text = str(error.value)
    assert text.isprintable() and len(text) < 200 and ":word" not in text
    assert shown(url).isprintable() and ":word" not in shown(url)


@given(st.text(max_size=60))
def test_whatever_is_read_is_plain(text):
    for url in (text, f"https://{text}", f"ssh://{text}", f"https://git.example.org/{text}"):
        try:
            place = parse(url)
        except ValueError:
            continue
        assert place.host.isascii() and place.host.isprintable() and not place.host.startswith("-")
        assert url.isascii() and url.isprintable() and " " not in url
        assert 0 < place.port < 65536 and place.scheme in ("http", "https", "ssh")


def test_a_secret_in_an_address_is_not_shown():
    assert shown("https://name:word@example.org:8443/a?token=b") == "https://example.org:8443/a"
    assert shown("https://[") == "(no address)"


@given(st.text())
def test_what_a_stranger_wrote_is_one_bounded_printable_line(text):
    line = harmless(text)
    assert line.isprintable() and len(line) <= 300
    if text.isprintable() and len(text) <= 300:
        assert line == text
