"""Conversion of links and pictures for the site."""

import pytest

from dev.site import links, pictures
from tests.testbed.documentation import DOCS


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("README.md", "[a](docs/run.md#queue)", "[a](run.md#queue)"),
        ("docs/run.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/decisions/0001-x.md", "[a](../run.md)", "[a](../run.md)"),
        ("docs/run.md", "[actions/](../actions/)", "`actions/`"),
        ("docs/run.md", "[the actions](../actions/)", "the actions (`actions`)"),
        ("docs/run.md", "[a](https://example.com/x)", "[a](https://example.com/x)"),
        ("docs/run.md", "[a](#queue)", "[a](#queue)"),
    ],
)
def test_links_are_converted_for_the_site(source, text, expected):
    assert links.on_site(text, source) == expected


@pytest.mark.parametrize("path", sorted((DOCS / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_has_both_colour_schemes_and_none_on_the_site(path):
    svg = path.read_text()
    assert (
        "prefers-color-scheme: dark" in svg
        and "<title>" in svg
        and "http" not in svg.replace("http://www.w3.org/", "")
    )
    assert "<style>" not in pictures.inline(svg, "what it shows")
