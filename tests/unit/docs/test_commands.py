"""Commands, options and paths in pages exist, also in prose."""

import re
import shlex

import click
import pytest

from crewyard.cli.main import program
from tests.testbed.documentation import PAGES, ROOT, blocks, name_of

INLINE = re.compile(r"`(crewyard [^`]+)`")
PLACES = re.compile(r"\.venv/bin/pytest(?: -\S+)* (\S+)")


def typed():
    for page in PAGES:
        text = page.read_text()
        commands = [" ".join(words.split()) for words in INLINE.findall(text)]
        for block in blocks(text):
            if block.language == "sh":
                script = block.text.replace("\\\n", " ")
                commands += re.findall(r"(?:^|\$\(|&& |! )(crewyard [^|;&#\n]+)", script, re.MULTILINE)
        for words in dict.fromkeys(commands):
            yield pytest.param(words, id=f"{name_of(page)}: {words[:60]}")


def wrong(words):
    """Return the first word that the program does not know, or None."""
    remaining = [part for part in re.split(r"\s+", words.replace("(", " ").replace(")", " "))[1:] if part]
    command, options = program, {}
    while True:
        options |= {
            name: parameter
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        while remaining and remaining[0].startswith("-") and isinstance(command, click.Group):
            flag = remaining.pop(0)
            if flag not in options and flag not in ("-h", "--help"):
                return flag
        if not isinstance(command, click.Group) or not remaining:
            break
        name = remaining.pop(0)
        if not re.fullmatch(r"[a-z]+", name):
            return None  # a placeholder, such as COMMAND
        if name not in command.commands:
            return name
        command = command.commands[name]
    known_options = {*options, "-h", "--help", "--json"}
    return next(
        (part for part in remaining if re.fullmatch(r"--?[a-z][a-z-]*", part) and part not in known_options),
        None,
    )


@pytest.mark.parametrize("words", list(typed()))
def test_commands_exist(words):
    assert wrong(words) is None


def test_a_wrong_command_is_detected():
    assert [wrong(words) for words in ("crewyard fly", "crewyard runs end x", "crewyard deploy --fast")] == [
        "fly",
        "end",
        "--fast",
    ]


def test_paths_of_tests_in_pages_exist():
    text = "".join(page.read_text() for page in PAGES)
    assert [path for path in PLACES.findall(text) if not (ROOT / shlex.split(path)[0]).exists()] == []
