"""The entrypoint is found statically; errors name what exists instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.entrypoint import EntrypointLocation, find_entrypoint, module_file
from plan.errors import PlanError


def check(files: dict[str, str], entrypoint: str = "main:kickoff", python: str = "3.11") -> None:
    find_entrypoint(
        {path: text.encode() for path, text in files.items()}, entrypoint, "crew.toml line 1", python
    )


def refusal(files: dict[str, str], entrypoint: str = "main:kickoff", python: str = "3.11") -> PlanError:
    with pytest.raises(PlanError) as raised:
        check(files, entrypoint, python)
    return raised.value


@pytest.mark.parametrize("text", ["class A:\n    kickoff = 1\nexec(A)", "def kickoff(): ..."])
def test_object_that_is_bound_or_may_be_bound_is_accepted(text: str) -> None:
    check({"main.py": text})


@pytest.mark.parametrize(
    ("text", "defined", "hint"),
    [
        ("def kick_off(): ...\ndef go(): ...\n_private = 1", "kick_off, go", "Did you mean main:kick_off?"),
        ("_kickoff = 1", "nothing", "Define kickoff in main.py, or name another object."),
    ],
)
def test_error_names_what_the_module_defines(text: str, defined: str, hint: str) -> None:
    error = refusal({"main.py": text}, "main:kickoff.run")
    message = "main.py does not define 'kickoff' (asked for by crew.toml line 1); it defines "
    assert (error.reason, error.message, error.hint) == ("EntrypointNotFound", message + defined, hint)


def test_syntax_of_a_newer_python_is_accepted() -> None:
    check({"main.py": "type kickoff = = 3"}, python="3.99")


@pytest.mark.parametrize(
    ("files", "path"),
    [
        (["a/b.py"], "a/b.py"),
        (["a/b/__init__.py", "a/b.py"], "a/b/__init__.py"),
        (["src/a/b.py"], "src/a/b.py"),
        (["src/a/b.py", "a/b.py"], "a/b.py"),
        (["a/b.txt", "x/a/b.py"], None),
    ],
)
def test_module_file(files: list[str], path: str | None) -> None:
    assert module_file(dict.fromkeys(files, b""), "a.b") == path


GENERAL = 'Set entrypoint = "module:object" in crew.toml.'
NOTEBOOKS = "Notebooks are not run: export one with jupyter nbconvert --to script."
KICKOFF = "def kickoff(): ..."


@pytest.mark.parametrize(
    ("files", "modules", "hint"),
    [
        ({"package.json": "{}", "app.py": ""}, "app", GENERAL),
        ({"src/mian.py": KICKOFF}, "mian", "Did you mean mian:kickoff?"),
        ({"mian.py": "type kickoff = = 3"}, "mian", "Did you mean mian:kickoff?"),
        ({"mian.py": "def run(): ..."}, "mian", GENERAL),
        ({"main.x.py": KICKOFF}, "main.x", GENERAL),
        ({"mai n.py": KICKOFF}, "mai n", GENERAL),
        ({"None.py": KICKOFF}, "None", GENERAL),
        ({"app.py": KICKOFF, "a.ipynb": ""}, "app", f"{GENERAL} {NOTEBOOKS}"),
        (
            dict.fromkeys(("__init__.py", "pkg/__init__.py", "src/pkg/b.py", "libs/src/x.py", "y.pyc"), ""),
            "libs.src.x, pkg, pkg.b",
            GENERAL,
        ),
    ],
)
def test_error_names_the_modules_and_one_that_has_the_object(
    files: dict[str, str], modules: str, hint: str
) -> None:
    error = refusal(files, python="3.99")
    assert (error.reason, error.message, error.hint) == (
        "EntrypointNotFound",
        f"main.py or src/main.py not found for main:kickoff (crew.toml line 1); modules: {modules}",
        hint,
    )


def test_missing_module_of_a_package_is_named_by_its_path() -> None:
    assert "a/b.py or src/a/b.py not found for a.b:c.d (" in refusal({"a/x.py": ""}, "a.b:c.d").message


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"go.mod": ""}, "Check spec.source.git.path of the Project, or the directory that you deploy."),
        ({"a.ipynb": ""}, NOTEBOOKS),
    ],
)
def test_source_without_python_files_is_refused(files: dict[str, str], hint: str) -> None:
    error = refusal(files)
    message = "the source has no Python file (looking for main:kickoff, crew.toml line 1)"
    assert (error.reason, error.message, error.hint) == ("EntrypointNotFound", message, hint)


@pytest.mark.parametrize("path", ["lib/a/b.py", "a/b/__init__.py"])
def test_excluded_module_is_named_with_its_pattern(path: str) -> None:
    with pytest.raises(PlanError) as raised:
        find_entrypoint({"c.py": b""}, "a.b:c", "crew.toml", "3.11", {"d/c.py": "d", path: "l*", "b.py": "b"})
    assert (raised.value.reason, raised.value.message, raised.value.hint) == (
        "EntrypointNotFound",
        f"{path}, needed for a.b:c (crew.toml), is excluded by the pattern 'l*'",
        f'Change that pattern in build.exclude, or add "!{path}" after it.',
    )


PROJECT_FILES = {"libs/pyproject.toml": b"[project]\nname = 'lib'\n", "libs/src/lib/two.py": b"graph = 1"}


@pytest.mark.parametrize(
    ("files", "entrypoint", "location"),
    [
        ({"src/a/b.py": b"class C: ..."}, "a.b:C.d", EntrypointLocation("src/a/b.py")),
        ({"a.py": b"b = 1\n" * (1 << 19)}, "a:z", EntrypointLocation("a.py")),
        (PROJECT_FILES, "lib.two:graph", EntrypointLocation("libs/src/lib/two.py", "libs")),
        ({"a/b.py": b"x = <syntax of a later Python>"}, "./a/b.py", EntrypointLocation("a/b.py")),
    ],
)
def test_location_of_an_entrypoint(
    files: dict[str, bytes], entrypoint: str, location: EntrypointLocation
) -> None:
    assert find_entrypoint(files, entrypoint, "crew.toml", "3.99") == location


def test_projects_of_the_source_are_searched_only_where_they_are_installed() -> None:
    with pytest.raises(PlanError, match=r"lib/two\.py or src/lib/two\.py not found"):
        find_entrypoint(PROJECT_FILES, "lib.two:graph", "crew.toml", "3.11", allow_projects=False)


@pytest.mark.parametrize("end", [".py", ":f"])
def test_entrypoint_has_at_most_256_characters(end: str) -> None:
    assert refusal({"a.py": ""}, f"{'a' * (256 - len(end))}{end}").reason == "EntrypointNotFound"
    assert refusal({"a.py": ""}, f"{'a' * (257 - len(end))}{end}").reason == "ConfigInvalid"


@pytest.mark.parametrize(
    "entrypoint", ["main", "main:", ":f", "a b:c", "main:f()", "../x:y", "a/b:c", "a..b:c", "-a:x", "a:1x"]
)
def test_malformed_entrypoint(entrypoint: str) -> None:
    error = refusal({"main.py": ""}, entrypoint)
    assert (error.reason, error.message, error.hint) == (
        "ConfigInvalid",
        f"crew.toml line 1 is {entrypoint!r}, not module:object, nor a file",
        "For example: pkg.crew:MyCrew, or main.py.",
    )


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        find_entrypoint({"main.py": data}, "main:kickoff", "the default", "3.11")
    except PlanError as error:
        assert error.reason == "EntrypointNotFound"
