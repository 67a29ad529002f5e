"""Choice of a crew's Python among the versions that an installation offers."""

import pytest

from plan.config.configuration import Configuration
from plan.config.toml_tables import TomlTable
from plan.errors import PlanError
from plan.python import PythonChoice, allows, choose_python

OFFERED = ("3.11", "3.12")
ORIGIN = "crew.toml line 2: deployment.python"
MORE = "The operator of the service can offer more (CREWYARD_BASE_IMAGES)."
NEAREST = "not offered here: built for the nearest,"


def requires(specifier: str) -> str:
    return f'[project]\nrequires-python = "{specifier}"\n'


def poetry(constraint: str) -> str:
    return f'[tool.poetry.dependencies]\npython = "{constraint}"\n'


def choose(
    files: dict[str, str],
    python: str | None = None,
    preferred: bool = False,
    versions: tuple[str, ...] = OFFERED,
    inline: str | None = None,
    directories: tuple[str, ...] = (),
) -> PythonChoice:
    configuration = Configuration(
        "crew.toml", python=python, python_origin=ORIGIN, python_is_preference=preferred
    )
    table = TomlTable("main.py", "", {"requires-python": inline} if inline else {}, "")
    encoded = {f"{path}pyproject.toml": text.encode() for path, text in files.items()}
    return choose_python(encoded, configuration, versions, table, directories)


@pytest.mark.parametrize(
    ("files", "directories", "inline", "version"),
    [
        ({}, (), None, "3.11"),
        ({"": requires(">=3.12")}, (), None, "3.12"),
        ({"": poetry("^3.12")}, (), None, "3.12"),
        ({"": requires(">=3.12") + poetry("^3.11")}, (), None, "3.12"),
        ({"": "[project]\nname = 'x'\n" + poetry("^3.12")}, (), None, "3.12"),
        ({"": "[tool.poetry.dependencies]\nrich = '*'\n"}, (), None, "3.11"),
        ({"": "[tool.poetry]\nname = 'x'\n"}, (), None, "3.11"),
        ({"": requires(">=3.11"), "a/": requires(">=3.12")}, ("a",), None, "3.12"),
        ({"": requires(">=3.12"), "a/": "[project]\nname = 'x'\n"}, ("a", "gone"), None, "3.12"),
        ({"a/": requires("<3.12"), "b/": requires(">=3.12")}, ("b", "a"), None, "3.12"),
        ({"a/": poetry("^3.12"), "b/": requires("<3.12")}, ("a", "b"), None, "3.12"),
        ({"a/": requires(">=3.12")}, (), None, "3.11"),
        ({"": requires("<3.12")}, (), ">=3.12", "3.12"),
        ({"": requires("^3.12")}, (), None, "3.11"),
        ({"": poetry("^2 || ^3")}, (), None, "3.11"),
    ],
)
def test_first_offered_version_that_the_nearest_project_allows(
    files: dict[str, str], directories: tuple[str, ...], inline: str | None, version: str
) -> None:
    assert choose(files, inline=inline, directories=directories) == PythonChoice(version)


def test_script_and_directories_are_optional() -> None:
    files = {"pyproject.toml": requires(">=3.12").encode()}
    assert choose_python(files, Configuration("crew.toml"), OFFERED) == PythonChoice("3.12")


@pytest.mark.parametrize(
    ("preference", "versions", "specifier", "version", "note"),
    [
        ("3.12", OFFERED, "", "3.12", ""),
        ("3.12.4", OFFERED, "", "3.12", ""),
        ("3.12-bookworm", OFFERED, "", "3.12", ""),
        ("3.14-slim", OFFERED, "", "3.12", f"{NEAREST} 3.12. {MORE}"),
        ("3.14", OFFERED, "", "3.12", f"{NEAREST} 3.12. {MORE}"),
        ("3.9", OFFERED, "", "3.11", f"{NEAREST} 3.11. {MORE}"),
        ("3.11", ("3.9", "3.10", "3.12", "3.13"), "", "3.12", f"{NEAREST} 3.12. {MORE}"),
        ("3.6", ("3", "3.12"), "", "3.12", f"{NEAREST} 3.12. {MORE}"),
        ("3.12", OFFERED, "<3.12", "3.11", "which pyproject.toml does not allow: built for 3.11"),
    ],
)  # fmt: skip
def test_preferred_version_or_the_nearest_one_is_chosen(
    preference: str, versions: tuple[str, ...], specifier: str, version: str, note: str
) -> None:
    files = {"": requires(specifier)} if specifier else {}
    notes = (f"{ORIGIN} is {preference!r}, {note}",) if note else ()
    assert choose(files, preference, True, versions) == PythonChoice(version, notes)


def test_configured_version_comes_before_what_the_project_allows() -> None:
    assert choose({"": requires("<3.12")}, "3.12") == PythonChoice("3.12")


@pytest.mark.parametrize(
    ("python", "preferred", "files", "message", "hint"),
    [
        ("3.9", False, {}, f"{ORIGIN} is '3.9'; offered here: 3.11, 3.12",
         f"Choose one of those, or omit it. {MORE}"),
        ("new", True, {}, f"{ORIGIN} is 'new'; offered here: 3.11, 3.12",
         f"Choose one of those, or omit it. {MORE}"),
        (None, False, {"": requires(">=3.13")},
         "pyproject.toml line 2: project.requires-python is '>=3.13'; offered here: 3.11, 3.12",
         f"Widen it so that it allows one of those. {MORE}"),
        (None, False, {"": poetry("^2")},
         "pyproject.toml line 2: tool.poetry.dependencies.python is '^2'; offered here: 3.11, 3.12",
         f"Widen it so that it allows one of those. {MORE}"),
        (None, False, {"": "[project]\nrequires-python = 3\n"},
         "pyproject.toml line 2: project.requires-python must be a non-empty string",
         'For example: requires-python = ">=3.11".'),
    ],
)  # fmt: skip
def test_error_lists_the_offered_versions(
    python: str | None, preferred: bool, files: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(PlanError) as raised:
        choose(files, python, preferred)
    assert (raised.value.reason, raised.value.message, raised.value.hint) == ("ConfigInvalid", message, hint)


def test_installation_without_a_version_names_its_setting() -> None:
    with pytest.raises(PlanError) as raised:
        choose({}, versions=())
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "ConfigInvalid",
        "this installation offers no Python version",
        "Ask the operator to set CREWYARD_BASE_IMAGES.",
    )


@pytest.mark.parametrize(
    ("specifier", "allowed"),
    [
        (">=3.11", "3.11 3.12"),
        ("> 3.11", "3.11 3.12"),
        (">=3.11.4", "3.11 3.12"),
        (">=3.12.1", "3.12"),
        (">=3", "3 3.10 3.11 3.12"),
        ("<3.11", "3 3.10"),
        ("<3.11.0", "3 3.10"),
        ("<3.11.9", "3 3.10 3.11"),
        ("<=3.11", "3 3.10"),
        ("<=3.11.0", "3 3.10"),
        ("<=3.11.9", "3 3.10 3.11"),
        ("<3", ""),
        ("<3.1", "3"),
        ("~=3.11", "3.11 3.12"),
        ("~=3.11.2", "3.11"),
        ("~=2.7", ""),
        ("==3.11", "3.11"),
        ("===3.11.4", "3.11"),
        ("==3.11.*", "3.11"),
        ("==3", "3 3.10 3.11 3.12"),
        ("==3.*", "3 3.10 3.11 3.12"),
        ("==2", ""),
        ("!=3.11.*", "3 3.10 3.12"),
        ("!=3.11", "3 3.10 3.11 3.12"),
        ("!=3.11.2.*", "3 3.10 3.11 3.12"),
        ("!=3.*", ""),
        ("!=2.*", "3 3.10 3.11 3.12"),
        ("!=2.11.*", "3 3.10 3.11 3.12"),
        (">=v3.10 , <3.12,!=3.10.*", "3.11"),
        (">=new", "3 3.10 3.11 3.12"),
        ("", "3 3.10 3.11 3.12"),
    ],
)
def test_specifier_is_met_by_the_latest_patch_release(specifier: str, allowed: str) -> None:
    versions = ("3", "3.10", "3.11", "3.12")
    assert [version for version in versions if allows(specifier, version)] == allowed.split()
