"""`crewyard projects`: list, show, create and delete projects."""

import sys

import click

from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import Column, age, display, field
from crewyard.cli.pages import items


@click.group()
def projects() -> None:
    """Manage projects, the named containers of deployments."""


_COLUMNS = (
    field("name"),
    field("plan"),
    field("active_deployment_id", "ACTIVE"),
    Column("READY", lambda row: display(row["ready"]["status"])),
    age("created_at"),
)


@projects.command("list")
@with_context
def list_projects(context: CliContext) -> None:
    """List the projects that the key can read."""
    rows = items(context.client.list_projects, None)
    context.output.rows(rows, _COLUMNS, "No projects found. Create one: crewyard projects create NAME")


@projects.command("show")
@click.argument("name")
@with_context
def show(context: CliContext, name: str) -> None:
    """Show one project."""
    source = Column("SOURCE", lambda row: display(((row["source"] or {}).get("git") or {}).get("url")))
    message = Column("MESSAGE", lambda row: display(row["ready"]["message"]))
    context.output.details(context.client.get_project(name), (*_COLUMNS, source, message))


@projects.command("create")
@click.argument("name")
@click.option("--plan", help="The plan, such as free or pro.")
@click.option("--git", "url", metavar="URL", help="Git repository to deploy new commits from.")
@click.option("--branch", help="Branch to follow (default: the repository's default branch).")
@click.option("--path", help="Directory of the crew in the repository.")
@with_context
def create(
    context: CliContext, name: str, plan: str | None, url: str | None, branch: str | None, path: str | None
) -> None:
    """Create a project."""
    if (branch or path) and not url:
        raise click.UsageError("--branch and --path need --git")
    git = {"url": url, **({"ref": {"branch": branch}} if branch else {}), **({"path": path} if path else {})}
    spec = {**({"plan": plan} if plan else {}), **({"source": {"git": git}} if url else {})}
    context.output.details(context.client.create_project(name, **spec), _COLUMNS)
    if not url:
        context.output.status(f"Deploy a crew to it: crewyard deploy --project {name}")


@projects.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@with_context
def delete(context: CliContext, name: str, yes: bool) -> None:
    """Delete a project with its deployments, runs and variables."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("cannot ask for confirmation: standard input is not a terminal; give --yes")
    if not yes:
        click.confirm(
            f"Delete the project {name} with its deployments, runs and variables?", abort=True, err=True
        )
    context.client.delete_project(name)
    context.output.status(f"The project {name} is deleted.")
