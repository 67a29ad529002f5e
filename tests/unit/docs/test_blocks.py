"""A test executes every command in the documentation, or the page gives a reason; examples are valid."""

import json
import re
import subprocess
import tomllib

import pytest
import yaml

from tests.e2e.docs.pages import REPOSITORY, PageNames, script
from tests.testbed.documentation import PAGES, ROOT, blocks, name_of

SHELL = {"sh", "bash", "console"}
KNOWN = SHELL | {"yaml", "json", "toml", "python", "text", "promql", "go", "js", "ts", "typescript", "ini"}
OF_BASH = re.compile(r"<<<|\[\[ |\$\{\w+[/^,][^}]*\}|\$\{\w+:\d[^}]*\}")
"""Here strings, tests and substitutions of bash: `sh -n` accepts some of them, or all where `sh` is bash."""
ELSEWHERE = {
    "docs/installation.md",
    "docs/clusters.md",
    "docs/monitoring.md",
    "docs/clients.md",
    "docs/security.md",
}
"""Their commands change an installation, or have separate tests."""


def every(*languages):
    return [
        pytest.param(block, id=f"{name_of(page)}:{block.line}")
        for page in PAGES
        for block in blocks(page.read_text())
        if block.language in languages
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in ELSEWHERE], ids=name_of)
def test_every_block_names_its_language(page):
    assert [block.line for block in blocks(page.read_text()) if block.language not in KNOWN] == []


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in ELSEWHERE], ids=name_of)
def test_every_command_is_executed_or_has_a_reason(page):
    unmarked = [
        block.line
        for block in blocks(page.read_text())
        if block.language in SHELL and not ("run" in block.marks or block.marks.get("not run"))
    ]
    assert unmarked == []


@pytest.mark.parametrize("block", every("sh"))
def test_commands_are_those_of_any_posix_shell(block):
    parsed = subprocess.run(["sh", "-n"], input=block.text, capture_output=True, text=True, timeout=60)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert OF_BASH.findall(block.text) == []


@pytest.mark.parametrize("block", every("sh"))
def test_a_body_that_curl_sends_has_its_media_type(block):
    calls = re.findall(r"\bcurl (?:[^\n]|(?<=\\)\n)*", block.text)
    # The API refuses a form, which is what curl says without a type.
    assert [
        call for call in calls if re.search(r" (-d|--data-binary) ", call) and "Content-Type:" not in call
    ] == []


@pytest.mark.parametrize("block", every("python"))
def test_python_compiles(block):
    compile(block.text, "a page", "exec")


@pytest.mark.parametrize("block", every("toml"))
def test_toml_is_toml(block):
    tomllib.loads(block.text)


@pytest.mark.parametrize("block", every("yaml"))
def test_yaml_is_yaml(block):
    assert [document for document in yaml.safe_load_all(block.text) if document]


@pytest.mark.parametrize("block", every("json"))
def test_json_is_json(block):
    # An ellipsis stands for what a reader fills in; `{…}` for an object, `…` within a text for itself.
    json.loads(re.sub(r"(?<=[:\[] )…", "null", block.text.replace("{…}", "{}")))


def test_marks_belong_to_the_next_block():
    assert [block.marks for block in blocks("<!-- run -->\n```sh\ntrue\n```\n")] == [{"run": ""}]
    assert [block.marks for block in blocks("<!-- run -->\nwords\n```sh\ntrue\n```\n")] == [{}]
    assert (ROOT / "docs").is_dir()


def test_a_page_stops_at_the_first_failure_and_uses_separate_names():
    commands = ("echo research", "false | cat", "echo no")
    page = "".join(f"<!-- run -->\n```sh\n{command}\n```\n" for command in commands)
    text = script(blocks(page), PageNames("mine", "http://127.0.0.1/research.git"))
    ended = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "mine\n")
    assert PageNames("mine", "http://127.0.0.1/research.git").into(f"{REPOSITORY} research-git") == (
        "http://127.0.0.1/research.git mine-git"
    )
