"""In a step of GitHub Actions, crew output is never a workflow command."""

import io
import json
import os
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from crewyard.cli.github_step import escape_commands, escape_commands_json
from crewyard.cli.output import Output, field

PIECES = st.lists(
    st.sampled_from(["::", ":", "#", "##[", "[", "\n", "\r", "\t", " ", "\u2003", "error", "]", "x"])
)


def is_command(text: str) -> bool:
    """As the runner decides it, line by line."""
    lines = text.replace("\r", "\n").split("\n")
    return any(line.lstrip().startswith("::") or "##[" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::add-mask::x\n", "\\x3a:add-mask::x\n"),
        ("a\n \t::error::b", "a\n \t\\x3a:error::b"),
        ("a\r::error::b", "a\r\\x3a:error::b"),
        ("see ##[group]", "see \\x23#[group]"),
        ("std::string and a::b", "std::string and a::b"),
        ("# Heading\n## [1]", "# Heading\n## [1]"),
    ],
)
def test_a_command_is_escaped(text, shown):
    assert escape_commands(text) == shown


@given(PIECES)
def test_escaped_text_has_no_commands(pieces):
    assert not is_command(escape_commands("".join(pieces)))


@given(PIECES)
def test_escaped_json_keeps_its_value_and_has_no_commands(pieces):
    row = {"message": "".join(pieces)}
    text = escape_commands_json(json.dumps(row))
    assert json.loads(text) == row and not is_command(text)


def printed_texts(inside, *texts):
    file = io.StringIO()
    with mock.patch.dict(os.environ, GITHUB_ACTIONS="true" if inside else "false"):
        output = Output(False, Console(file=file))
    for text in texts:
        output.text(text)
    return file.getvalue()


@given(PIECES, PIECES)
@example([":"], [":", "add-mask::x"])
@example(["x", "#", "#"], ["[", "error", "]"])
def test_a_line_in_two_pieces_has_no_commands(first, second):
    assert not is_command(printed_texts(True, "".join(first), "".join(second)))


def test_pieces_stay_one_line_outside_of_a_step():
    assert printed_texts(False, "a", "", "b\n") == "ab\n"
    assert printed_texts(True, "a", "", "b\n") == "a\nb\n"


@pytest.mark.parametrize("inside", [True, False])
def test_output_is_escaped_only_in_a_step(monkeypatch, capsys, inside):
    monkeypatch.setenv("GITHUB_ACTIONS", "true" if inside else "false")
    output = Output(False, Console(soft_wrap=True), Console(stderr=True, soft_wrap=True))
    output.text("::error::text\n")
    output.status("::error::sentence")
    output.rows([{"m": "one\n::error::cell"}], [field("m")], "none")
    output.details({"m": "one\n::error::field"}, [field("m")])
    Output(True).item({"m": "##[error]json"}, None)
    printed = "".join(capsys.readouterr())
    assert is_command(printed) is not inside
    assert printed.count("error") == 5
