"""Names that a module binds at its top level, of the text alone."""

import ast
import keyword
import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan.bindings import (
    Bindings,
    bindings_of,
    import_start,
    last_name,
    module_at,
    parse_module,
    parse_outline,
)
from plan.errors import PlanError

NAMES = st.text(string.ascii_lowercase + "_", min_size=1, max_size=8).filter(
    lambda name: not keyword.iskeyword(name)
)


@pytest.mark.parametrize(
    ("text", "names", "incomplete"),
    [
        ("def kickoff(): ...", ["kickoff"], False),
        ("async def kickoff(): ...", ["kickoff"], False),
        ("class kickoff: ...", ["kickoff"], False),
        ("kickoff = 1", ["kickoff"], False),
        ("kickoff: int = 1", ["kickoff"], False),
        ("a = kickoff = 1", ["a", "kickoff"], False),
        ("(a, [kickoff, *b]) = f()", ["a", "kickoff", "b"], False),
        ("import kickoff", ["kickoff"], False),
        ("import kickoff.more, a.b.c", ["kickoff", "a"], False),
        ("import x.y as kickoff", ["kickoff"], False),
        ("from x import kickoff", ["kickoff"], False),
        ("from x import y as kickoff", ["kickoff"], False),
        ("if f():\n    from x import kickoff\nelse:\n    other = None", ["kickoff", "other"], False),
        ("try:\n    import x\nexcept ImportError:\n    kickoff = None", ["x", "kickoff"], False),
        ("with f() as kickoff:\n    pass", ["kickoff"], False),
        ("for kickoff in x:\n    pass", ["kickoff"], False),
        ("while f():\n    kickoff = 1", ["kickoff"], False),
        ("print(kickoff := 3)", ["kickoff"], False),
        ("[(kickoff := x) for x in (y := f()) if (z := x)]", ["kickoff", "y", "z"], False),
        ("match f():\n    case {'a': a, **b} | [c, *d] | (e as f):\n        pass", list("bacdfe"), False),
        ("from x import *\nfrom y import a", ["a"], True),
        ("def __getattr__(name): ...", ["__getattr__"], True),
        ("globals().update(f())", [], True),
        ("a = 1\nexec(text)\nb = 1", ["a", "b"], True),
        # Names that are bound elsewhere, or not at all.
        ("", [], False),
        ("kickoff", [], False),
        ("kickoff: int", [], False),
        ("def other():\n    kickoff = 1", ["other"], False),
        ("class Other:\n    kickoff = 1", ["Other"], False),
        ("import x.kickoff", ["x"], False),
        ("import kickoff as x", ["x"], False),
        ("[kickoff for kickoff in y]", [], False),
        ("lambda kickoff: (a := 1)", [], False),
        ("x.kickoff = 1", [], False),
        ("x['kickoff'] = 1", [], False),
        ("x.exec(text)", [], False),
        ("make(text)", [], False),
    ],
)
def test_names_that_a_module_binds_or_may_bind(text: str, names: list[str], incomplete: bool) -> None:
    assert bindings_of(ast.parse(text)) == Bindings(tuple(names), incomplete)


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_bound_names(names: list[str]) -> None:
    text = "".join(f"{name} = 1\n" for name in names)
    tree = parse_module("main.py", text.encode(), None)
    assert tree is not None
    bindings = bindings_of(tree)
    assert list(bindings.names) == names
    assert not bindings.incomplete


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


NEWER = "    return <syntax of a later Python>\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"class A:  \n    x = 1\n    def f(self):\n{NEWER}B = 1\n", ["A", "B"]),
        (f"class A(  # a base\n    Base,\n):  # a class: of crews\n{NEWER}", ["A"]),
        (f"@mark\n@more(1)\nasync def a():\n{NEWER}@mark\nclass B: ...\n", ["a", "B"]),
        ("A = [\n\n    1,\n\t2,\n# note\n]\nB = f(\n)\nC = {\n}\nx = <newer>\n", ["A", "B", "C"]),
        (f"{NEWER}A = <newer>\nx: <newer>\nB = f'\ufffd'\n", ["B"]),
        ("A = 1\n" + "#" * (2 << 20) + "\nB = 1\n", ["A"]),
        ("", []),
    ],
)
def test_outline_of_a_newer_module_has_each_statement_that_can_be_read(text: str, names: list[str]) -> None:
    data = text.encode().replace("\ufffd".encode(), b"\xff")
    assert bindings_of(parse_outline(data)) == Bindings(tuple(names), False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Flow", "Flow"),
        ("flow.Flow", "Flow"),
        ("flow.Flow[State]", "Flow"),
        ("Flow(1)", "Flow"),
        ("flow.Flow[State](1)", ""),
        ("make()()", ""),
        ("1", ""),
    ],
)
def test_last_name_of_an_expression(text: str, name: str) -> None:
    assert last_name(ast.parse(text, mode="eval").body) == name


def test_decorators_stay_with_a_class_of_which_only_the_head_can_be_read() -> None:
    data = f"@mark\n@more(1)\nclass A:\n    def f(self):\n{NEWER}@last\n".encode()
    assert [ast.unparse(node) for node in parse_outline(data).body] == ["@mark\n@more(1)\nclass A:\n    ..."]


def test_syntax_error_counts_unless_the_python_of_the_crew_is_newer() -> None:
    major, minor = sys.version_info[:2]
    assert parse_module("a.py", b"def f(:", f"{major}.{minor + 1}") is None
    with pytest.raises(PlanError) as raised:
        parse_module("a.py", b"\ndef f(:", f"{major}.{minor}.99")
    assert raised.value.message.startswith("a.py line 2: syntax error: ")
    assert raised.value.hint == "Try: python3 -m py_compile a.py"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["a/b.py", "a/b/__init__.py"], "a/b/__init__.py"),
        (["a/b.py", "b.py"], "a/b.py"),
        (["a/b/c.py", "a/b.pyi", "b.py"], None),
    ],
)
def test_package_comes_before_a_module_of_its_name(files: list[str], found: str | None) -> None:
    assert module_at(dict.fromkeys(files, b""), "a/b") == found


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("from a import b", None),
        ("from . import b", "p/q"),
        ("from .a.b import c", "p/q"),
        ("from ..a import b", "p"),
        ("from ... import b", ""),
        ("from .... import b", ""),
    ],
)
def test_relative_import_starts_from_a_directory_of_the_source(text: str, start: str | None) -> None:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.ImportFrom)
    assert import_start(statement, "p/q/m.py") == start
