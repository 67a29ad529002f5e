"""Names of files that would change a checkout, leave a directory, or that Windows refuses."""

import pytest

from plan.file_names import download_problem
from tests.testbed import hostile_file_names


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize("name", hostile_file_names.REPOSITORY)
def test_path_of_a_version_control_directory_is_refused(name: str, windows: bool) -> None:
    assert str(download_problem(name, windows)).endswith(" is a directory of a version control program")


@pytest.mark.parametrize(
    ("names", "elsewhere", "on_windows"),
    [
        (hostile_file_names.OUTSIDE, "it is not a relative path", "it is not a relative path"),
        (hostile_file_names.WINDOWS, None, "Windows does not allow this name"),
        (hostile_file_names.HARMLESS, None, None),
    ],
)
def test_name_is_refused_where_it_cannot_be_written(
    names: list[str], elsewhere: str | None, on_windows: str | None
) -> None:
    assert {name: download_problem(name, windows=False) for name in names} == dict.fromkeys(names, elsewhere)
    assert {name: download_problem(name, windows=True) for name in names} == dict.fromkeys(names, on_windows)


def test_refused_directory_is_named_in_ascii() -> None:
    assert download_problem("a/.\uff47it/x", windows=False) == (
        "'.\\uff47it' is a directory of a version control program"
    )
