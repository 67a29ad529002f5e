"""Reference pages are complete: generated parts have descriptions, manual parts omit nothing."""

import re

import pytest

from crds import conditions
from crewyard.cli import context, main
from crewyard.cli.main import program
from dev.site import calls, commands, fields, sections
from tests.testbed.documentation import DOCS, PAGES, ROOT, name_of

PLACE = re.compile(r"`((?:api|controller|crds|plan|build|runner|dev|tests|client|manifests)/[\w./-]+)`")
KINDS = ("project", "deployment", "run")


def page(name):
    return (DOCS / name).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_kind_is_described(kind):
    assert fields.undescribed(sections.version(kind)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_a_kind_has_its_fields_and_an_example(kind):
    text = page(f"{kind}.md")
    for mark in ("spec", "status"):
        assert f"<!-- generated: fields {kind} {mark} -->" in text
    filled = sections.fill(text)
    assert "| `conditions` | list of objects |" in filled
    assert f"kind: {kind.title()}" in text


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("project", {conditions.READY, conditions.SOURCE_RESOLVED}),
        ("deployment", {conditions.READY, conditions.BUILT}),
        ("run", {conditions.SUCCEEDED, conditions.COMPLETE, conditions.ADMITTED}),
    ],
)
def test_every_condition_is_in_the_table_of_its_kind(kind, types):
    rows = "".join(re.findall(r"^\| `[A-Z]\w+`.*$", page(f"{kind}.md"), re.MULTILINE))
    assert {
        word for word in types | {conditions.RECONCILING, conditions.STALLED} if f"`{word}`" not in rows
    } == set()


def test_every_call_is_in_the_table_of_the_api():
    table, missing = page("api.md"), []
    for path, item in sections.description()["paths"].items():
        tail = (
            path.removeprefix("/v1/projects/{name}")
            .replace("{variable}", "{VAR}")
            .replace("{artifact}", "{name}")
        )
        if tail not in table and not path.endswith("/content"):
            missing.append((path, list(item)))
    assert missing == []


def test_every_call_has_a_summary_scope_and_example():
    text = sections.render_section("calls")
    for item in sections.description()["paths"].values():
        for method, operation in item.items():
            if method not in ("parameters", "head"):
                assert f"### {operation['summary']}\n" in text
                assert operation["description"] and operation["tags"]


def test_every_field_of_an_api_object_is_described():
    assert calls.undescribed(sections.description()) == []


def test_every_command_and_option_is_described():
    assert commands.undescribed(program, "crewyard") == []


def test_every_exit_code_of_the_command_line_is_in_its_table():
    table = page("command-line.md")
    codes = {0, 1, context.USAGE, context.SERVICE, main.EXIT_INTERRUPTED, main.EXIT_STDOUT_CLOSED}
    assert [code for code in codes if f"\n| {code} | " not in table] == []


@pytest.mark.parametrize("action", ["deploy", "run"])
def test_the_readme_of_an_action_names_its_inputs_and_outputs(action):
    text = (ROOT / "actions" / action / "README.md").read_text()
    definition = sections.action_file(action)
    assert [
        name for name in (*definition["inputs"], *definition["outputs"]) if f"| `{name}`" not in text
    ] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_all_marks_are_known(path):
    assert not re.search("^<!-- generated:", sections.fill(path.read_text()), re.MULTILINE)


def test_paths_in_pages_exist():
    missing = []
    for path in PAGES:
        for path_in_page in PLACE.findall(path.read_text()):
            if not (ROOT / path_in_page).exists() and not (ROOT / f"client/crewyard/{path_in_page}").exists():
                missing.append(f"{name_of(path)}: {path_in_page}")
    assert missing == []
