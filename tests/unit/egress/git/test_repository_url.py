"""Repository URLs: what is accepted, what is refused before name resolution, what messages show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from egress.git.repository_url import RepositoryUrl, display_url, parse, printable
from tests.testbed.hostile_urls import HOSTILE


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://git.example.org/a/b.git", RepositoryUrl("https", "", "git.example.org", 443, "/a/b.git")),
        ("http://Git.Example.org:8080/a?b=c", RepositoryUrl("http", "", "git.example.org", 8080, "/a")),
        ("https://[2606:50c0::1]/a", RepositoryUrl("https", "", "2606:50c0::1", 443, "/a")),
        ("https://git_1.example.org./a", RepositoryUrl("https", "", "git_1.example.org.", 443, "/a")),
        (
            "ssh://git@git.example.org/~me/a.git",
            RepositoryUrl("ssh", "git", "git.example.org", 22, "/~me/a.git"),
        ),
        ("ssh://git.example.org:7999/a%20b", RepositoryUrl("ssh", "", "git.example.org", 7999, "/a%20b")),
    ],
)
def test_parse(url, parts):
    assert parse(url) == parts


def test_at_least_a_hundred_hostile_urls():
    assert len(set(HOSTILE)) >= 100


@pytest.mark.parametrize("url", sorted(set(HOSTILE)))
def test_hostile_url_is_refused(url):
    with pytest.raises(ValueError) as error:
        parse(url)
    text = str(error.value)
    assert text.isprintable() and len(text) < 200 and ":word" not in text
    assert display_url(url).isprintable() and ":word" not in display_url(url)


@given(st.text(max_size=60))
def test_accepted_url_is_plain(text):
    for url in (text, f"https://{text}", f"ssh://{text}", f"https://git.example.org/{text}"):
        try:
            parts = parse(url)
        except ValueError:
            continue
        assert parts.host.isascii() and parts.host.isprintable() and not parts.host.startswith("-")
        assert url.isascii() and url.isprintable() and " " not in url
        assert 0 < parts.port < 65536 and parts.scheme in ("http", "https", "ssh")


def test_display_url_hides_secrets():
    assert display_url("https://name:word@example.org:8443/a?token=b") == "https://example.org:8443/a"
    assert display_url("https://[") == "(invalid URL)"


@given(st.text())
def test_printable_bounds_untrusted_text(text):
    line = printable(text)
    assert line.isprintable() and len(line) <= 300
    if text.isprintable() and len(text) <= 300:
        assert line == text
