"""The table of limits in docs/settings.md says what the code does."""

import re

import pytest

from crds.installation_limits import KEYS, NAME, UPLOAD, Limits
from tests.testbed.documentation import DOCS

ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (.+) \|$", re.MULTILINE)
PAGE = (DOCS / "settings.md").read_text()
ROWS = {name: (told, meaning) for name, *told, meaning in ROW.findall(PAGE)}


def test_the_table_has_each_limit_once():
    assert sorted(ROWS) == sorted(KEYS) == sorted(name for name, *_ in ROW.findall(PAGE))


@pytest.mark.parametrize("name", KEYS)
def test_a_row_tells_the_default_and_what_is_allowed(name):
    told, meaning = ROWS[name]
    assert [int(number.replace(",", "")) for number in told] == [getattr(Limits(), name), *KEYS[name]]
    assert len(meaning) > 20


def test_both_variables_are_read_by_both_processes():
    for name in (NAME, UPLOAD):
        assert f"| `{name}` | api, controller |" in PAGE
