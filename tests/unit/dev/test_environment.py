"""The export lines are safe in a shell for any value."""

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from dev.environment import exports, variables
from dev.settings import Settings

VALUES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40)


@limits(max_examples=20, deadline=None)
@given(VALUES)
def test_a_shell_reads_back_the_same_value(value: str) -> None:
    script = exports({"CREWYARD_X": value}) + 'printf "%s." "$CREWYARD_X"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == value + "."


def test_only_export_lines(tmp_path: Path) -> None:
    text = exports(variables(Settings(tmp_path), {"PATH": "/usr/bin"}))
    assert all(line.startswith("export ") for line in text.splitlines())


def test_path_gains_the_directory_once(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    once = variables(settings, {"PATH": "/usr/bin:/bin"})["PATH"]
    assert once == f"{settings.bin}:/usr/bin:/bin"
    assert variables(settings, {"PATH": once})["PATH"] == once


def test_the_key_is_exported_once_it_exists(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert "CREWYARD_API_KEY" not in variables(settings, {})
    settings.admin_key.write_text("crw_x\n")
    assert variables(settings, {})["CREWYARD_API_KEY"] == "crw_x"
