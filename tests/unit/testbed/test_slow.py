"""Slow tests of a report: named unless a docstring says why."""

from pathlib import Path

import pytest

from tests import slow

REPORT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.unit.testbed.test_slow" name="test_main_fails_on_request" time="{seconds}"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_a(): ...", False),
        ('def test_a():\n    """Five kills."""', False),
        ('def test_a():\n    """Slow: five kills."""', True),
        ('async def test_a():\n    """Five kills.\n\n    Slow: each with a recovery."""', True),
        ('def test_b():\n    """Slow: another test."""\n\n\ndef test_a(): ...', False),
        ('"""A module. Slow: builds an image."""\n\n\ndef test_a(): ...', True),
    ],
)
def test_a_docstring_explains_with_the_word(source: str, expected: bool) -> None:
    assert slow.explains(source, "test_a") is expected


@pytest.mark.parametrize(
    ("seconds", "arguments", "code"), [(19, ["--fail"], 0), (21, ["--fail"], 1), (21, [], 0)]
)
def test_main_fails_on_request(tmp_path: Path, capsys, seconds: int, arguments: list[str], code: int) -> None:
    file = tmp_path / "report.xml"
    file.write_text(REPORT.format(seconds=seconds))
    assert slow.main([str(file), *arguments]) == code
    assert ("slow: 21 s: tests/unit/testbed/test_slow.py" in capsys.readouterr().out) is (seconds > 20)
