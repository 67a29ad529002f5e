"""`crewyard env`: a project's environment variables. The API never returns values."""

import re
import sys
from pathlib import Path

import click

from crewyard.cli import read_text
from crewyard.cli.context import CliContext, project_option, with_context
from crewyard.cli.output import age, field
from crewyard.cli.pages import items

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")


@click.group()
def env() -> None:
    """Manage a project's environment variables; changes take effect with the next run."""


@env.command("list")
@project_option
@with_context
def list_variables(context: CliContext, project: str | None) -> None:
    """List the names of the variables."""
    name = context.named_project(project)
    rows = items(lambda page, size: context.client.list_variables(name, page, size), None)
    columns = (field("name"), age("updated_at", "UPDATED"))
    context.output.rows(rows, columns, f"{name} has no variables; set one: crewyard env set NAME=VALUE")


@env.command("set")
@click.argument("assignments", nargs=-1, required=True, metavar="NAME=VALUE | NAME ...")
@project_option
@with_context
def set_variables(context: CliContext, assignments: tuple[str, ...], project: str | None) -> None:
    """Set variables. For a NAME without a value, prompt, or read standard input."""
    name = context.named_project(project)
    parts = [assignment.partition("=") for assignment in assignments]
    if sum(not sign for _, sign, _ in parts) > 1:
        raise click.UsageError("only one NAME can be without a value")
    for variable, sign, value in parts:
        text = value if sign else _prompt(variable)
        result = context.client.set_variable(name, variable, text)
        context.output.item(result, f"{variable} is set")


def _prompt(variable: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(variable, hide_input=True, err=True))
    return read_text.read(Path("-")).removesuffix("\n").removesuffix("\r")


@env.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME ...")
@project_option
@with_context
def remove(context: CliContext, names: tuple[str, ...], project: str | None) -> None:
    """Remove variables."""
    name = context.named_project(project)
    for variable in names:
        context.client.remove_variable(name, variable)
        context.output.item({"name": variable}, f"{variable} is removed")


@env.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option("--replace", is_flag=True, help="Remove the variables that are not in the file.")
@project_option
@with_context
def import_file(context: CliContext, file: Path, replace: bool, project: str | None) -> None:
    """Set the variables of a .env file (- for standard input)."""
    name = context.named_project(project)
    variables = parse(read_text.read(file))
    if not variables:
        raise click.UsageError(f"{file} has no variables; write lines of the form NAME=VALUE")
    if replace:
        context.client.replace_variables(name, variables)
    for variable, value in variables.items():
        if not replace:
            context.client.set_variable(name, variable, value)
        context.output.item({"name": variable}, f"{variable} is set")


def parse(text: str) -> dict[str, str]:
    """Return the variables of a .env file: NAME=VALUE, optional quotes, comments after `#`.

    Quoted values may span lines. Raises UsageError that names the line.
    """
    variables: dict[str, str] = {}
    lines = enumerate(text.replace("\r\n", "\n").split("\n"), 1)
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise click.UsageError(f"line {number} is not of the form NAME=VALUE")
        value = re.sub(r"\A\s+#.*", "", match[2]).strip()
        while value[:1] in ("'", '"') and _closing_quote(value) is None and (more := next(lines, None)):
            value += f"\n{more[1]}"
        variables[match[1]] = _value(value, number)
    return variables


def _value(text: str, number: int) -> str:
    if text[:1] in ("'", '"'):
        end = _closing_quote(text)
        if end is None or (text[end + 1 :].strip() and not text[end + 1 :].lstrip().startswith("#")):
            raise click.UsageError(f"line {number}: the quote is not closed, or text follows it")
        inner = text[1:end]
        if text[0] == "'":
            return inner
        return re.sub(r"\\([nrt\\\"'$`])", lambda match: _ESCAPES.get(match[1], match[1]), inner)
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


def _closing_quote(text: str) -> int | None:
    index = 1
    while index < len(text):
        if text[index] == "\\" and text[0] == '"':
            index += 1
        elif text[index] == text[0]:
            return index
        index += 1
    return None
