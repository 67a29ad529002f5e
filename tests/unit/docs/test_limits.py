"""The tables of limits in docs/settings.md and docs/crew.md match the code."""

import importlib
import re

import pytest

from crds.installation_limits import LIMITS_VARIABLE, MAX_UPLOAD_VARIABLE, RANGES, InstallationLimits
from tests.testbed.documentation import DOCS

ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (.+) \|$", re.MULTILINE)
PAGE = (DOCS / "settings.md").read_text()
CREW_PAGE = (DOCS / "crew.md").read_text()
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


@pytest.mark.parametrize(
    ("row", "limits"),
    [
        ("`exclude`", ["exclude:_MAX_PATTERNS", "exclude:_MAX_PATTERN_LENGTH"]),
        ("`[artifacts] include`", ["config.artifacts:_MAX_PATTERNS", "config.artifacts:_MAX_CHARACTERS"]),
        (
            "`env_required`",
            ["config.configuration:_MAX_VARIABLES", "config.configuration:_MAX_VARIABLE_CHARACTERS"],
        ),
        ("`input` of `smoke`", ["config.smoke:_MAX_INPUT_BYTES"]),
        ("`[run.inputs]`, as JSON Schema", ["config.run_inputs:_MAX_BYTES"]),
        ("an entrypoint", ["entrypoint:_MAX_ENTRYPOINT_LENGTH"]),
        ("names and entrypoints of several crews", ["named_entrypoints:_MAX_BYTES"]),
        ("all of these together but `exclude`", ["make:_MAX_PLAN_BYTES"]),
        ("requirements.txt with what it includes", ["packages.requirements:_MAX_FILES"]),
        ("each of these files; a lock", ["source:MAX_TEXT_BYTES", "packages.locks.lock:_MAX_LOCK_BYTES"]),
        ("a Dockerfile", ["base.read:MAX_BYTES", "base.read:MAX_INSTRUCTIONS", "base.read:MAX_PATH_LENGTH"]),
        (
            "`dockerfile_lines`",
            ["packages.system_packages:_MAX_LINES", "packages.system_packages:_MAX_LINE_LENGTH"],
        ),
        ("modules that are read for an entrypoint", ["discovery.candidates:_MAX_FILES"]),
    ],
)
def test_the_limits_of_a_configuration_are_those_of_the_plan(row, limits):
    (text,) = re.findall(rf"^\| {re.escape(row)} \| (.+) \|$", CREW_PAGE, re.MULTILINE)
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    numbers = [
        int(number.replace(",", "")) * units.get(unit, 1)
        for number, unit in re.findall(r"(\d[\d,]*) (\w+)", text)
    ]
    places = [limit.split(":") for limit in limits]
    assert numbers == [getattr(importlib.import_module(f"plan.{module}"), name) for module, name in places]


def test_both_variables_are_read_by_both_processes():
    for name in (LIMITS_VARIABLE, MAX_UPLOAD_VARIABLE):
        assert f"| `{name}` | api, controller |" in PAGE
