"""Links from errors to the documentation of their reason."""

import re
from pathlib import Path

import pytest

from api.config import ApiConfigError, parse
from api.v1 import reason_links
from crds.reasons import BuildReason, RunReason

DOCS = "https://docs.example.com/crewyard"
PAGE = Path(__file__).parents[4] / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("reason", [*BuildReason, *RunReason])
def test_every_reason_links_to_its_section(reason):
    link = reason_links.link(DOCS, str(reason))["docs_url"]
    assert link == f"{DOCS}/troubleshooting.html#{reason.lower()}"
    sections = {found.lower() for found in re.findall(r"^### (\w+)", PAGE.read_text(), re.MULTILINE)}
    assert link.partition("#")[2] in sections


@pytest.mark.parametrize(("docs", "reason"), [("", "OOMKilled"), (DOCS, "SomethingElse"), (DOCS, None)])
def test_no_link_without_docs_or_for_unknown_reason(docs, reason):
    assert reason_links.link(docs, reason) == {}


def test_docs_url_is_url_or_empty():
    environ = {"CREWYARD_TOKEN_KEY": "k" * 32}
    assert parse(environ).docs_url == parse({**environ, "CREWYARD_DOCS_URL": ""}).docs_url == ""
    assert parse({**environ, "CREWYARD_DOCS_URL": f"{DOCS}/"}).docs_url == DOCS
    with pytest.raises(ApiConfigError, match="CREWYARD_DOCS_URL"):
        parse({**environ, "CREWYARD_DOCS_URL": "docs"})
