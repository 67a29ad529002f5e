"""`crewyard schedules`: times at which a project's runs start automatically."""

from pathlib import Path
from typing import Any

import click

from crewyard import models
from crewyard.cli import json_object, label_pairs
from crewyard.cli.context import CliContext, normal_path, project_option, with_context
from crewyard.cli.output import Column, display, field
from crewyard.cli.pages import items
from crewyard.errors import WrongValue

COLUMNS = (
    field("name"),
    field("cron"),
    field("time_zone", "ZONE"),
    field("suspend", "SUSPENDED"),
    field("next_time", "NEXT"),
    field("last_time", "LAST"),
    field("last_run_id", "LAST RUN"),
)
_DETAILS = (
    *COLUMNS,
    field("concurrency_policy", "CONCURRENCY"),
    field("starting_deadline", "DEADLINE"),
    field("entrypoint"),
    Column("INPUT", lambda row: display(row["input"])),
    Column("LABELS", lambda row: label_pairs.text(row["labels"])),
    field("message"),
)
_SPEC = (
    "cron",
    "time_zone",
    "input",
    "entrypoint",
    "labels",
    "concurrency_policy",
    "starting_deadline",
    "suspend",
)


@click.group()
def schedules() -> None:
    """Manage schedules: times at which a project's active deployment runs automatically."""


@schedules.command("list")
@project_option
@with_context
def list_schedules(context: CliContext, project: str | None) -> None:
    """List the schedules with their next time and last run."""
    name = context.named_project(project)
    rows = items(lambda page, size: context.client.list_schedules(name, page, size), None)
    none = f'{name} has no schedules; set one: crewyard schedules set NAME --cron "0 7 * * MON-FRI"'
    context.output.rows(rows, COLUMNS, none)


@schedules.command("show")
@click.argument("name")
@project_option
@with_context
def show(context: CliContext, name: str, project: str | None) -> None:
    """Show one schedule, and why its last time has not started a run."""
    context.output.details(_find(context, context.named_project(project), name), _DETAILS)


@schedules.command("set")
@click.argument("name")
@click.option("--cron", metavar="CRON", help='When to run, such as "0 7 * * MON-FRI" or @daily.')
@click.option(
    "--time-zone", metavar="ZONE", help="Time zone of the times, such as Europe/Berlin (default: UTC)."
)
@json_object.input_options()
@click.option(
    "--entrypoint",
    metavar="NAME",
    callback=normal_path,
    help="A crew or graph of the configuration by name; also module:object or a file.",
)
@label_pairs.option("Label of its runs; repeatable.")
@click.option(
    "--concurrency",
    "concurrency_policy",
    type=click.Choice(["Allow", "Forbid", "Replace"]),
    help="While the previous run has not ended: start another, wait for it, or cancel it.",
)
@click.option(
    "--deadline", "starting_deadline", metavar="TIME", help="How late a run may start, such as 10m."
)
@project_option
@with_context
def set_schedule(
    context: CliContext,
    name: str,
    text: str | None,
    input_file: Path | None,
    labels: tuple[str, ...],
    project: str | None,
    **spec: Any,
) -> None:
    """Create a schedule, or change the given options of one."""
    project_name = context.named_project(project)
    given = {key: value for key, value in spec.items() if value is not None}
    inputs = json_object.read_inputs(text, input_file)
    given |= {} if inputs is None else {"input": inputs}
    given |= {"labels": label_pairs.parse(labels)} if labels else {}
    before = _listed(context, project_name).get(name)
    if before is None and "cron" not in given:
        raise click.UsageError("a new schedule needs --cron")
    _write(context, project_name, name, {**_spec(before), **given})


@schedules.command("suspend")
@click.argument("name")
@project_option
@with_context
def suspend(context: CliContext, name: str, project: str | None) -> None:
    """Start no runs until the schedule is resumed."""
    project_name = context.named_project(project)
    _write(context, project_name, name, {**_spec(_find(context, project_name, name)), "suspend": True})


@schedules.command("resume")
@click.argument("name")
@project_option
@with_context
def resume(context: CliContext, name: str, project: str | None) -> None:
    """Start runs again; the newest missed time starts one unless its deadline has passed."""
    project_name = context.named_project(project)
    _write(context, project_name, name, {**_spec(_find(context, project_name, name)), "suspend": False})


@schedules.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME ...")
@project_option
@with_context
def remove(context: CliContext, names: tuple[str, ...], project: str | None) -> None:
    """Remove schedules; their runs stay."""
    project_name = context.named_project(project)
    for name in names:
        context.client.remove_schedule(project_name, name)
        context.output.item({"name": name}, f"{name} is removed")


def _listed(context: CliContext, project: str) -> dict[str, models.Schedule]:
    rows = items(lambda page, size: context.client.list_schedules(project, page, size), None)
    return {row["name"]: row for row in rows}


def _find(context: CliContext, project: str, name: str) -> models.Schedule:
    found = _listed(context, project).get(name)
    if found is None:
        raise WrongValue(f"{project} has no schedule {name}; list them with crewyard schedules list")
    return found


def _spec(schedule: models.Schedule | None) -> dict[str, Any]:
    """Return the fields that PUT takes."""
    row: dict[str, Any] = dict(schedule or {})
    return {key: row[key] for key in _SPEC if row.get(key) is not None}


def _write(context: CliContext, project: str, name: str, spec: dict[str, Any]) -> None:
    context.output.details(context.client.set_schedule(project, name, **spec), _DETAILS)
