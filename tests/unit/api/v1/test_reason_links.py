"""Links from an error to the documentation of its reason."""

import re
from pathlib import Path

import pytest

from api.config import ApiConfigError, parse
from api.v1 import reason_links
from crds.reasons import BuildReason, RunReason

DOCS = "https://docs.example.com/crewyard"
PAGE = Path(__file__).parents[4] / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("reason", [*BuildReason, *RunReason])
def test_every_reason_leads_to_its_section(reason):
    place = reason_links.link(DOCS, str(reason))["docs_url"]
    assert place == f"{DOCS}/troubleshooting.html#{reason.lower()}"
    sections = {found.lower() for found in re.findall(r"^### (\w+)", PAGE.read_text(), re.MULTILINE)}
    assert place.partition("#")[2] in sections


@pytest.mark.parametrize(("docs", "reason"), [("", "OOMKilled"), (DOCS, "SomethingElse"), (DOCS, None)])
def test_there_is_no_link_where_nothing_would_be_found(docs, reason):
    assert reason_links.link(docs, reason) == {}


def test_the_setting_is_an_address_or_empty():
    given = {"CREWYARD_TOKEN_KEY": "k" * 32}
    assert parse(given).docs_url == parse({**given, "CREWYARD_DOCS_URL": ""}).docs_url == ""
    assert parse({**given, "CREWYARD_DOCS_URL": f"{DOCS}/"}).docs_url == DOCS
    with pytest.raises(ApiConfigError, match="CREWYARD_DOCS_URL"):
        parse({**given, "CREWYARD_DOCS_URL": "docs"})
