"""The entrypoint is found, or what is there instead is named, without executing anything."""

import keyword
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.bindings import Bindings, bindings_of, parse_module
from plan.entrypoint import find_entrypoint, module_file
from plan.errors import PlanError

NAMES = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8).filter(
    lambda name: not keyword.iskeyword(name)
)


def check(files: dict[str, str], entrypoint: str = "main:kickoff", python: str = "3.11") -> None:
    find_entrypoint(
        {path: text.encode() for path, text in files.items()}, entrypoint, "crew.toml line 1", python
    )


def refusal(files: dict[str, str], entrypoint: str = "main:kickoff") -> PlanError:
    with pytest.raises(PlanError) as raised:
        check(files, entrypoint)
    return raised.value


@pytest.mark.parametrize(
    "text",
    [
        "def kickoff(): ...",
        "async def kickoff(): ...",
        "class kickoff: ...",
        "kickoff = 1",
        "kickoff: int = 1",
        "a = kickoff = 1",
        "(a, [kickoff, *b]) = f()",
        "import kickoff",
        "import kickoff.more",
        "import x as kickoff",
        "from x import kickoff",
        "from x import y as kickoff",
        "if f():\n    from x import kickoff\nelse:\n    kickoff = None",
        "try:\n    import x\nexcept ImportError:\n    kickoff = None",
        "with f() as kickoff:\n    pass",
        "for kickoff in x:\n    pass",
        "while f():\n    kickoff = 1",
        "print(kickoff := 3)",
        "[kickoff := x for x in y]",
        "match f():\n    case {'a': kickoff}:\n        pass",
        "from x import *",
        "def __getattr__(name): ...",
        "globals().update(f())",
        "exec(text)",
    ],
)
def test_bound_at_the_top_level_or_impossible_to_tell(text: str) -> None:
    check({"main.py": text})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kickoff",
        "kickoff: int",
        "def other():\n    kickoff = 1",
        "class Other:\n    kickoff = 1",
        "import x.kickoff",
        "import kickoff as x",
        "[kickoff for kickoff in y]",
        "lambda kickoff: 1",
        "x.kickoff = 1",
        "x['kickoff'] = 1",
    ],
)
def test_not_bound(text: str) -> None:
    error = refusal({"main.py": text})
    assert error.reason == "EntrypointNotFound"
    assert "main.py binds no 'kickoff' (asked for by crew.toml line 1)" in error.message


def test_the_nearest_name_is_offered() -> None:
    error = refusal({"main.py": "def kick_off(): ...\ndef other(): ...\n_private = 1"})
    assert "it binds kick_off, other" in error.message
    assert error.hint == "Did you mean main:kick_off?"


def test_a_syntax_error_is_named_with_file_and_line() -> None:
    error = refusal({"main.py": "x = 1\ndef kickoff(:\n"})
    assert error.reason == "EntrypointNotFound"
    assert error.message.startswith("main.py line 2: syntax error")


def test_grammar_of_a_newer_python_is_not_judged() -> None:
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
def test_where_a_module_is_looked_for(files: list[str], path: str | None) -> None:
    assert module_file(dict.fromkeys(files, b""), "a.b") == path


@pytest.mark.parametrize(
    ("files", "reason", "part"),
    [
        ({}, "EntrypointNotFound", "no Python file at all"),
        ({"package.json": "{}", "index.js": ""}, "UnsupportedFramework", "JavaScript"),
        ({"go.mod": ""}, "UnsupportedFramework", "Go"),
        ({"package.json": "{}", "app.py": ""}, "EntrypointNotFound", "there is app"),
        ({"src/mian.py": ""}, "EntrypointNotFound", "no main.py or src/main.py"),
    ],
)
def test_what_is_said_when_the_module_is_not_there(files: dict[str, str], reason: str, part: str) -> None:
    error = refusal(files)
    assert error.reason == reason
    assert part in error.message


@pytest.mark.parametrize(
    "entrypoint", ["main", "main:", ":f", "a b:c", "main:f()", "../x:y", "a/b:c", "a..b:c", "1:x"]
)
def test_a_malformed_entrypoint(entrypoint: str) -> None:
    assert refusal({"main.py": ""}, entrypoint).reason == "ConfigInvalid"


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_exactly_the_bound_names_are_found(names: list[str]) -> None:
    text = "".join(f"{name} = 1\n" for name in names)
    tree = parse_module("main.py", text.encode(), None)
    assert tree is not None
    found = bindings_of(tree)
    assert list(found.names) == names
    assert not found.open


@given(st.binary(max_size=200))
def test_any_bytes_end_in_an_answer(data: bytes) -> None:
    try:
        find_entrypoint({"main.py": data}, "main:kickoff", "the default", "3.11")
    except PlanError as error:
        assert error.reason == "EntrypointNotFound"


@pytest.mark.parametrize("limit", [400, 1000, 20_000])
def test_deeply_nested_code_is_judged_alike_whatever_the_interpreters_limit(limit: int) -> None:
    chain = "if a: pass\n" + "elif a: pass\n" * 900 + "else: deep = 1\nkickoff = make()\n"
    tree = parse_module("main.py", chain.encode(), "3.11")
    assert tree is not None
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert bindings_of(tree) == Bindings(("deep", "kickoff"), False)
    finally:
        sys.setrecursionlimit(before)
