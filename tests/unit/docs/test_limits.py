"""The table of limits in docs/settings.md matches the code."""

import re

import pytest

from crds.installation_limits import LIMITS_VARIABLE, MAX_UPLOAD_VARIABLE, RANGES, InstallationLimits
from tests.testbed.documentation import DOCS

ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (.+) \|$", re.MULTILINE)
PAGE = (DOCS / "settings.md").read_text()
ROWS = {name: (numbers, meaning) for name, *numbers, meaning in ROW.findall(PAGE)}


def test_the_table_has_each_limit_once():
    assert sorted(ROWS) == sorted(RANGES) == sorted(name for name, *_ in ROW.findall(PAGE))


@pytest.mark.parametrize("name", RANGES)
def test_a_row_has_the_default_and_the_range(name):
    numbers, meaning = ROWS[name]
    assert [int(number.replace(",", "")) for number in numbers] == [
        getattr(InstallationLimits(), name),
        *RANGES[name],
    ]
    assert len(meaning) > 20


def test_both_variables_are_read_by_both_processes():
    for name in (LIMITS_VARIABLE, MAX_UPLOAD_VARIABLE):
        assert f"| `{name}` | api, controller |" in PAGE
