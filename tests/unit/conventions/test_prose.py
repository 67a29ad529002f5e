"""Prose in field English: no word of the old dialect in pages, docstrings, comments and messages.

Called by `make lint`, beside codespell, which checks spelling.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

import pytest

from tests.unit.conventions.test_names import ROOT, files, is_product, teardown_module, tree

__all__ = ["teardown_module"]

BANNED = {
    r"for ever\b": "permanently, without limit",
    r"begun": "started",
    r"anew": "again",
    r"\bnobody\b": "no one; name the actor",
    r"\bsomebody\b": "name the actor: a user, an operator, a client",
    r"\bwhoever\b": "name the actor",
    r"\bwhatever\b": "any",
    r"\bstrangers?\b": "untrusted input, a client",
    r"\btold\b": "reports, sends; name the sender",
    r"\btroubles?\b(?!\")": "failure, fault, error",
    r"\btwins?\b": "duplicate, reusable deployment",
    r"\blast words?\b": "termination message, last output",
    r"\btaken away\b": "removed, deleted",
    r"by itself": "automatically",
    r"\bfacade\b": "API server",
    r"the ground\b": "the dev cluster",
    r"the yard\b": "the test bed",
    r"\bfarewell\b": "cleanup of a deleted project",
    r"\bin vain\b": "without success",
    r"\bmend(?:s|ed|ing)?\b": "repair, fix",
    r"\bof ours\b": "Crewyard's",
    r"\bthereof\b": "of it",
    r"\blest\b": "so that … not",
    r"\bupon\b": "on",
    r"\bway out\b": "egress",
}
"""Pattern -> what to write instead."""
EXAMPLES_OF_THE_DIALECT = {"tests/unit/conventions/test_prose.py"}
MAX_TEST_NAME = 70
PROTOCOL = {"the facade let this run wait for a place"}
"""Sentences that released runners send; both sides compare them byte for byte."""
GENERATED = re.compile(r"<!-- (?:figures|seen: begin) -->.*?<!-- (?:end of figures|seen: end) -->", re.DOTALL)
"""Tables of measurements, which keep the texts of their records."""
CODE = re.compile(r"`[^`\n]*`")


@cache
def pages() -> tuple[str, ...]:
    """Return the Markdown pages that users and developers read."""
    import subprocess

    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(
        name
        for name in listed.stdout.split()
        if not name.startswith(("tests/cluster/upgrade/before", "examples/")) and (ROOT / name).exists()
    )


def page_lines(text: str) -> list[str]:
    """Return the lines of a page with generated tables and code spans blanked. Pure."""
    written = GENERATED.sub(lambda table: "\n" * table[0].count("\n"), text)
    return CODE.sub("``", written).splitlines()


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a Python file, and the strings that are sentences, as (line, text). Pure."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def banned(text: str) -> list[str]:
    """Return the banned words in `text`, each with its replacement. Pure."""
    return [
        f"{match[0]!r}: write {instead}"
        for pattern, instead in BANNED.items()
        if (match := re.search(pattern, text, re.IGNORECASE))
    ]


def names_of_tests(module: ast.Module) -> Iterator[str]:
    """Yield the names of a module's tests. Pure."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def name_problems(function: str) -> Iterator[str]:
    """Yield what is wrong with the name of a test. Pure."""
    if len(function) > MAX_TEST_NAME:
        yield f"longer than {MAX_TEST_NAME} characters"
    yield from banned(function.replace("_", " "))


def test_pages_are_field_english() -> None:
    assert [
        f"{name}:{number}: {word}"
        for name in pages()
        for number, line in enumerate(page_lines((ROOT / name).read_text()), 1)
        for word in banned(line)
    ] == []


def test_docstrings_comments_and_messages_are_field_english() -> None:
    assert [
        f"{name}:{number}: {word}"
        for name in files()
        if name not in EXAMPLES_OF_THE_DIALECT
        for source in [(ROOT / name).read_text()]
        if banned(source)
        for number, text in prose(source)
        for word in banned(text)
        if text not in PROTOCOL
    ] == []


def test_names_of_tests_are_short_and_field_english() -> None:
    assert [
        f"{name}: {problem}: {function}"
        for name in files()
        if not is_product(name)
        for function in names_of_tests(tree(name))
        for problem in name_problems(function)
    ] == []


@pytest.mark.parametrize(
    "text", ["Nobody is told.", "a stranger's archive", "It is begun anew", "THE FACADE"]
)
def test_a_word_of_the_dialect_is_found(text: str) -> None:
    assert banned(text)


@pytest.mark.parametrize(
    "name", ["test_trouble_that_a_pod_tells_of", "test_it_is_told", "test_a" + "_long" * 14]
)
def test_a_long_name_and_a_name_in_dialect_are_found(name: str) -> None:
    assert list(name_problems(name))


def test_only_prose_is_read_from_code() -> None:
    text = 'facade = 1  # a comment\nname = "facade"\nraise ValueError(f"the facade {name}")\n'
    assert [line for line, _ in prose(text)] == [1, 3]
