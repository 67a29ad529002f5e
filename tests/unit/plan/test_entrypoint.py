"""The entrypoint is found statically; errors name what exists instead."""

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
def test_bound_at_the_top_level_or_at_run_time(text: str) -> None:
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
    assert "main.py does not define 'kickoff' (asked for by crew.toml line 1)" in error.message


def test_similar_name_is_suggested() -> None:
    error = refusal({"main.py": "def kick_off(): ...\ndef other(): ...\n_private = 1"})
    assert "it defines kick_off, other" in error.message
    assert error.hint == "Did you mean main:kick_off?"


def test_syntax_error_has_file_and_line() -> None:
    error = refusal({"main.py": "x = 1\ndef kickoff(:\n"})
    assert error.reason == "EntrypointNotFound"
    assert error.message.startswith("main.py line 2: syntax error")


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


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({}, "the source has no Python file"),
        ({"package.json": "{}", "app.py": ""}, "modules: app"),
        ({"src/mian.py": ""}, "main.py or src/main.py not found"),
    ],
)
def test_missing_module(files: dict[str, str], part: str) -> None:
    error = refusal(files)
    assert error.reason == "EntrypointNotFound"
    assert part in error.message


@pytest.mark.parametrize(
    ("files", "hint"),
    [
        ({"src/mian.py": "def kickoff(): ..."}, "Did you mean mian:kickoff?"),
        ({"manage.py": "def run(): ..."}, 'Set entrypoint = "module:object" in crew.toml.'),
        ({"mian.py": "def kickoff(:"}, 'Set entrypoint = "module:object" in crew.toml.'),
        ({"main-x/mai.py": "def kickoff(): ..."}, 'Set entrypoint = "module:object" in crew.toml.'),
    ],
)
def test_only_a_module_with_the_object_is_suggested(files: dict[str, str], hint: str) -> None:
    assert refusal(files).hint == hint


@pytest.mark.parametrize(
    "entrypoint", ["main", "main:", ":f", "a b:c", "main:f()", "../x:y", "a/b:c", "a..b:c", "-a:x", "a:1x"]
)
def test_malformed_entrypoint(entrypoint: str) -> None:
    assert refusal({"main.py": ""}, entrypoint).reason == "ConfigInvalid"


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_bound_names(names: list[str]) -> None:
    text = "".join(f"{name} = 1\n" for name in names)
    tree = parse_module("main.py", text.encode(), None)
    assert tree is not None
    bindings = bindings_of(tree)
    assert list(bindings.names) == names
    assert not bindings.incomplete


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        find_entrypoint({"main.py": data}, "main:kickoff", "the default", "3.11")
    except PlanError as error:
        assert error.reason == "EntrypointNotFound"


@pytest.mark.parametrize("limit", [400, 1000, 20_000])
def test_deeply_nested_code_is_independent_of_the_recursion_limit(limit: int) -> None:
    chain = "if a: pass\n" + "elif a: pass\n" * 900 + "else: deep = 1\nkickoff = make()\n"
    tree = parse_module("main.py", chain.encode(), "3.11")
    assert tree is not None
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert bindings_of(tree) == Bindings(("deep", "kickoff"), False)
    finally:
        sys.setrecursionlimit(before)
