"""Mutation testing: its parts name files that exist, and a result is counted honestly."""

from configparser import ConfigParser

import pytest

from dev.mutants import PARTS, ROOT, killed_percent, main, settings


@pytest.mark.parametrize("name", PARTS)
def test_parts_name_existing_files(name):
    part = PARTS[name]
    assert [path for path in (*part.modules, *part.tests) if not list(ROOT.glob(path))] == []


def test_settings_of_a_part():
    parser = ConfigParser()
    parser.read_string(settings(PARTS["signatures"], ["api", "crds", "docs", "tests", "pyproject.toml"]))
    read = {name: value.split("\n")[1:] for name, value in parser["mutmut"].items()}
    assert (read["source_paths"], read["also_copy"]) == (["api", "crds"], ["docs"])
    assert tuple(read["only_mutate"]) == PARTS["signatures"].modules


def test_unchecked_mutant_does_not_count_as_killed():
    stats = {"killed": 1, "timeout": 1, "segfault": 0, "survived": 1, "not_checked": 1, "total": 4}
    assert killed_percent(stats) == 50.0


def test_unknown_part(capsys):
    assert main(["nothing"]) == 2
    assert "signatures" in capsys.readouterr().err
