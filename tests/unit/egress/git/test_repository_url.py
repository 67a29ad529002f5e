"""Addresses of repositories: what is read, what is refused before anything is looked up, what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.git.repository_url import Place, harmless, parse, shown
from tests.testbed.hostile_urls import HOSTILE


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
