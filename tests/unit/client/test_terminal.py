"""Output to terminals, closed pipes, and encodings without Unicode."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from crewyard.cli.escape import escape_control
from crewyard.cli.main import call
from crewyard.cli.output import Output, field

CLIENT = Path(__file__).parents[3] / "client"


@pytest.mark.parametrize(
    ("text", "plain", "coloured"),
    [
        ("a\tb\n", "a\tb\n", "a\tb\n"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H", "\\x1b[2J\\x1b[H"),
        ("\x9b2J\x00", "\\x9b2J\\x00", "\\x9b2J\\x00"),
        ("10 %\r20 %\r\n", "10 %\n20 %\n", "10 %\n20 %\n"),
        ("é – 😀", "é – 😀", "é – 😀"),
    ],
)
def test_only_colours_reach_a_terminal_unescaped(text, plain, coloured):
    assert (escape_control(text), escape_control(text, colours=True)) == (plain, coloured)


@given(st.text())
def test_no_control_character_is_left(text):
    assert all(
        letter.isprintable() or letter in "\n\t" or not letter.isascii() for letter in escape_control(text)
    )


def printed(act, terminal):
    file = io.StringIO()
    file.isatty = lambda: terminal
    act(Output(False, Console(file=file, width=200, soft_wrap=True)))
    return file.getvalue()


def test_text_for_a_pipe_is_unchanged_also_with_forced_colours(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert printed(lambda out: out.text("10 %\r\x1b[2J\n"), False) == "10 %\r\x1b[2J\n"


def test_a_crew_cannot_clear_the_screen():
    hostile = "\x1b[2Jall is well"
    for terminal in (True, False):
        row = {"message": hostile}
        assert "\x1b[2J" not in printed(lambda out, row=row: out.details(row, [field("message")]), terminal)
        assert "\x1b[2J" not in printed(
            lambda out, row=row: out.rows([row], [field("message")], ""), terminal
        )
    assert "\x1b[2J" not in printed(lambda out: out.item({}, hostile), True)
    assert "\x1b[2J" not in printed(lambda out: out.text(hostile), True)
    assert printed(lambda out: out.text(hostile), False) == hostile
    assert printed(lambda out: out.item({}, "a\tb"), False) == "a\tb\n"


def program(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "HOME": "/nonexistent", **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("descriptor", "act"),
    [
        (1, 'Output(True).rows([{"name": "a"}], [field("name")], "")'),
        (1, 'Output(False).rows([{"name": "a"}], [field("name")], "")'),
        (2, 'Output(False).status("a")'),
        (2, 'resolve(environment={"CREWYARD_CONFIG": os.devnull})'),
    ],
)
def test_a_closed_pipe_is_not_a_failed_run(descriptor, act):
    code = f"""
import os, sys, time
from crewyard.cli import main
from crewyard.cli.output import Output, field
from crewyard.settings import resolve
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, {descriptor})
main.program.main = lambda *_, **__: {act}
main.main()
"""
    done = program(code)
    assert (done.returncode, done.stdout, done.stderr) == (141, b"", b"")


def test_a_pipe_that_is_closed_on_windows_is_no_wrong_usage():
    code = """
import errno
from crewyard.cli import main
def write(*_, **__):
    raise OSError(errno.EINVAL, "Invalid argument")
main.program.main = write
main.main()
"""
    done = program(code)
    assert (done.returncode, done.stderr) == (141, b"")
    named = program(code.replace('"Invalid argument"', '"Invalid argument", "crew.toml"'))
    assert (named.returncode, named.stderr) == (2, b"crewyard: crew.toml: Invalid argument\n")


def test_json_is_json_in_every_encoding():
    row = {"text": "é 😀 \ud800 \x9b2J\x7f"}
    code = f"""
from crewyard.cli import main
from crewyard.cli.output import Output
main.program.main = lambda *_, **__: (Output(True).item({row!a}, None), Output(False).text("é\\n"))[0]
main.main()
"""
    for encoding in ("ascii", "utf-8", "cp1252"):
        done = program(code, PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        printed = done.stdout.splitlines()[0].decode(encoding)
        assert json.loads(printed) == row and "\x9b" not in printed and "\x7f" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs", "show", ".."], "is not a name"),
        (["run", "x", "--input", '{"a": NaN}'], "JSON"),
        (["run", "x", "--input", '{"a": "\\ud800"}'], "surrogate"),
        (["run", "x", "--key", "\u00e9"], "ASCII"),
        (["run", "x", "--key", ""], "ASCII"),
        (["--url", "http://[::1", "runs", "list"], "is not a URL"),
        (["init", "/proc/none"], "/proc/none"),
    ],
)
def test_a_usage_error_is_one_sentence(arguments, message, capsys, monkeypatch):
    monkeypatch.setenv("CREWYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CREWYARD_API_KEY", "crw_x")
    assert call(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "variables",
    [
        {"ALL_PROXY": "ftp://proxy.example.org"},
        {"NO_PROXY": "::1,[::1]"},
        {"SSL_CERT_FILE": "/nonexistent/ca.pem"},
    ],
)
def test_a_wrong_proxy_or_ca_file_is_a_usage_error(variables, capsys, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    environment = {"CREWYARD_URL": "https://127.0.0.1:9", "CREWYARD_API_KEY": "crw_x", **variables}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert call(["runs", "list"]) == 2
    printed = capsys.readouterr().err
    assert all(name in printed for name in variables)
