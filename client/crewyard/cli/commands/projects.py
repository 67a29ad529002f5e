"""`crewyard projects`: list, show, create, delete."""

import sys

import click

from crewyard.cli.context import Context, with_context
from crewyard.cli.output import Column, age, field, shown
from crewyard.cli.pages import items


@click.group()
def projects() -> None:
    """Projects, the named containers of deployments."""


_COLUMNS = (
    field("name"),
    field("plan"),
    field("active_deployment_id", "ACTIVE"),
    Column("READY", lambda row: shown(row["ready"]["status"])),
    age("created_at"),
)


@projects.command("list")
@with_context
def list_projects(context: Context) -> None:
    """Lists the projects that the key may see."""
    rows = items(context.client.list_projects, None)
    context.output.rows(rows, _COLUMNS, "There is no project; make one with `crewyard projects create NAME`.")


@projects.command("show")
@click.argument("name")
@with_context
def show(context: Context, name: str) -> None:
    """Shows one project."""
    source = Column("SOURCE", lambda row: shown(((row["source"] or {}).get("git") or {}).get("url")))
    message = Column("MESSAGE", lambda row: shown(row["ready"]["message"]))
    context.output.one(context.client.get_project(name), (*_COLUMNS, source, message))


@projects.command("create")
@click.argument("name")
@click.option("--plan", help="The plan, such as free or pro.")
@click.option("--git", "url", metavar="URL", help="A repository whose commits are deployed by themselves.")
@click.option("--branch", help="Its branch; else the repository's default one.")
@click.option("--path", help="The crew's directory in the repository.")
@with_context
def create(
    context: Context, name: str, plan: str | None, url: str | None, branch: str | None, path: str | None
) -> None:
    """Makes a project."""
    if (branch or path) and not url:
        raise click.UsageError("--branch and --path need --git")
    git = {"url": url, **({"ref": {"branch": branch}} if branch else {}), **({"path": path} if path else {})}
    spec = {**({"plan": plan} if plan else {}), **({"source": {"git": git}} if url else {})}
    context.output.one(context.client.create_project(name, **spec), _COLUMNS)
    if not url:
        context.output.say(f"Deploy a crew to it: crewyard deploy --project {name}")


@projects.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Does not ask.")
@with_context
def delete(context: Context, name: str, yes: bool) -> None:
    """Removes a project with its deployments, runs and variables."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here; give --yes")
    if not yes:
        click.confirm(f"Remove the project {name} with all that belongs to it?", abort=True, err=True)
    context.client.delete_project(name)
    context.output.say(f"The project {name} is removed.")
