"""The entrypoint of a configuration: declared, the default, or found; and those a run can name."""

import pytest

from plan.config.configuration import Configuration, NamedEntrypoint
from plan.entrypoint import EntrypointLocation
from plan.errors import PlanError
from plan.locate import locate_entrypoint
from plan.named_entrypoints import check_named_entrypoints

KICKOFF = "def kickoff(): ...\n"
CREW = "@CrewBase\nclass A: ...\n"
RUNS = "crew.kickoff()\n"
FOUND = "no entrypoint is configured; found"


def runs(path: str, entrypoint: str) -> str:
    return (
        f"{path} line 2 runs when the module is imported, before {entrypoint} is called; move it below "
        f'if __name__ == "__main__", or set entrypoint = "{path}" to run a script'
    )


def located(
    files: dict[str, str], configuration: Configuration, excluded: dict[str, str] | None = None
) -> tuple[str, EntrypointLocation, tuple[str, ...]]:
    encoded = {path: text.encode() for path, text in files.items()}
    return locate_entrypoint(encoded, configuration, "3.99", excluded or {})


@pytest.mark.parametrize(
    ("files", "configuration", "entrypoint", "path", "notes"),
    [
        ({"src/a.py": KICKOFF}, Configuration("x", entrypoint="a:kickoff"), "a:kickoff", "src/a.py", ()),
        ({"a.py": KICKOFF + RUNS}, Configuration("x", entrypoint="a:kickoff"), "a:kickoff", "a.py",
         (runs("a.py", "a:kickoff"),)),
        ({"a.py": KICKOFF + RUNS}, Configuration("x", entrypoint="./a.py"), "a.py", "a.py", ()),
        ({"a.py": "x = <newer>"}, Configuration("x", entrypoint="a:f"), "a:f", "a.py", ()),
        ({"main.py": KICKOFF, "crew.py": CREW}, Configuration("x"), "main:kickoff", "main.py", ()),
        ({"src/main.py": KICKOFF + RUNS}, Configuration("x"), "main:kickoff", "src/main.py",
         (runs("src/main.py", "main:kickoff"),)),
        ({"main.py": KICKOFF, "crew.py": CREW}, Configuration("x", kind="crew"), "crew:A", "crew.py",
         (f"{FOUND} crew:A",)),
        ({"crew.py": CREW}, Configuration("x"), "crew:A", "crew.py", (f"{FOUND} crew:A",)),
        ({"main.py": "x = <newer>"}, Configuration("x"), "main:kickoff", "main.py", ()),
        ({"crew.py": CREW + "x = <newer>"}, Configuration("x"), "crew:A", "crew.py", (f"{FOUND} crew:A",)),
        ({"main.py": "x = 1\n" + RUNS}, Configuration("x"), "main.py", "main.py", (f"{FOUND} main.py",)),
    ],
)  # fmt: skip
def test_entrypoint_is_declared_or_the_default_or_found(
    files: dict[str, str], configuration: Configuration, entrypoint: str, path: str, notes: tuple[str, ...]
) -> None:
    assert located(files, configuration) == (entrypoint, EntrypointLocation(path), notes)


def test_default_entrypoint_is_not_searched_in_projects() -> None:
    files = {
        "p/pyproject.toml": "[project]\nname = 'main'\n",
        "p/src/main/__init__.py": KICKOFF,
        "crew.py": CREW,
    }
    assert located(files, Configuration("x"))[0] == "crew:A"
    declared = located(files, Configuration("x", entrypoint="main:kickoff"))
    assert declared[1] == EntrypointLocation("p/src/main/__init__.py", "p")


@pytest.mark.parametrize(
    ("configuration", "excluded", "message"),
    [
        (Configuration("line 1", entrypoint="b:f"), {"b.py": "b*"},
         "b.py, needed for b:f (line 1), is excluded by the pattern 'b*'"),
        (Configuration("line 1"), {"main.py": "m*"},
         "main.py, needed for main:kickoff (line 1), is excluded by the pattern 'm*'"),
        (Configuration("line 1"), {},
         "main.py or src/main.py not found for main:kickoff (line 1); modules: a"),
        (Configuration("line 1", kind="flow"), {},
         "line 1 requires a class derived from Flow; none was found in the sources"),
    ],
)  # fmt: skip
def test_error_tells_why_the_configured_or_default_entrypoint_is_missing(
    configuration: Configuration, excluded: dict[str, str], message: str
) -> None:
    with pytest.raises(PlanError) as raised:
        located({"a.py": ""}, configuration, excluded)
    assert raised.value.message == message


FILES = {
    "a.py": b"f = 1",
    "b.py": b"g = <newer>",
    "p/pyproject.toml": b"[project]\nname = 'p'\n",
    "p/src/p/c.py": b"h = 1",
    "e.py": b"print(1)",
}
RUN_IT = "to run it, set spec.source.git.crew to {0} or deploy with --crew {0}"
LONG = "n" * 64


@pytest.mark.parametrize(
    ("name", "named", "project", "entrypoints", "notes"),
    [
        (None, [], None, {}, []),
        ("one", [("two", "b:g")], None, {"one": "a:f", "two": "b:g"}, []),
        ("o.ne", [("two", "b:g")], None, {"two": "b:g"}, []),
        ("one", [("two", "p.c:h")], "p", {"one": "a:f", "two": "p.c:h"}, []),
        ("one", [("two", "b:g")], "p", {"one": "a:f", "two": "b:g"}, []),
        ("one", [("two", "./p/../e.py")], None, {"one": "a:f", "two": "e.py"}, []),
        ("one", [("two", "p.c:h"), ("b", "b:g")], None, {"one": "a:f", "b": "b:g"},
         [f"two is left out: the project in p is not installed for a:f; {RUN_IT.format('p.c:h')}"]),
        ("one", [("two", "d:x"), ("b", "b:g")], None, {"one": "a:f", "b": "b:g"},
         ["two is left out: d.py, needed for d:x (line two), is excluded by the pattern 'd*'"]),
        ("one", [("t.wo", "b:g"), (LONG, "b:g"), (LONG[1:], "b:g")], None, {"one": "a:f", LONG[1:]: "b:g"},
         [f"{each} is left out: a run cannot name it; use letters, digits, _ and -; {RUN_IT.format('b:g')}"
          for each in ("t.wo", LONG)]),
    ],
)  # fmt: skip
def test_entrypoints_that_a_run_can_name(
    name: str | None,
    named: list[tuple[str, str]],
    project: str | None,
    entrypoints: dict[str, str],
    notes: list[str],
) -> None:
    others = tuple(NamedEntrypoint(each, entrypoint, f"line {each}") for each, entrypoint in named)
    assert check_named_entrypoints(
        FILES,
        Configuration("x", name=name, named=others),
        ("a:f", EntrypointLocation("a.py", project)),
        "3.99",
        {"d.py": "d*"},
    ) == (entrypoints, tuple(notes))


@pytest.mark.parametrize(("length", "kept"), [(51, True), (52, False)])
def test_names_and_entrypoints_have_at_most_1024_bytes_as_json(length: int, kept: bool) -> None:
    names = [*(f"{number:02}{'n' * 61}" for number in range(13)), "z" * length]
    configuration = Configuration("x", named=tuple(NamedEntrypoint(name, "a:f", "x") for name in names))
    default = ("a:f", EntrypointLocation("a.py"))
    found, notes = check_named_entrypoints(FILES, configuration, default, "3.11", {})
    assert list(found) == (names if kept else names[:-1])
    reason = "all names and entrypoints together have more than 1024 bytes"
    assert notes == (() if kept else (f"{names[-1]} is left out: {reason}; {RUN_IT.format('a:f')}",))
