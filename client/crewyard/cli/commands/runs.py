"""`crewyard runs`: list, show, answer, cancel and delete runs."""

import json
from collections.abc import Mapping
from typing import Any

import click

from crewyard import models
from crewyard.call import Page
from crewyard.cli import label_pairs, questions
from crewyard.cli.confirmation import confirm, yes_option
from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import Column, age, display, duration, field, money, waiting
from crewyard.cli.pages import items

_STATUSES = click.Choice(["pending", "running", "succeeded", "failed", "canceled"])
COLUMNS = (
    field("id"),
    field("status"),
    field("project"),
    field("deployment_id", "DEPLOYMENT"),
    Column("TOOK", lambda row: duration(row["duration_ms"])),
    Column("TOKENS", lambda row: _tokens(row.get("usage"))),
    Column("COST", lambda row: _cost(row.get("usage"))),
    age("created_at"),
)


@click.group()
def runs() -> None:
    """Manage runs, the executions of a crew."""


@runs.command("list")
@click.option("--project", "-p", metavar="NAME", help="Only runs of this project.")
@click.option("--deployment", metavar="ID", help="Only runs of this deployment.")
@click.option("--status", type=_STATUSES, multiple=True, help="Only runs with this status; repeatable.")
@label_pairs.option("Only runs with this label; repeatable.")
@click.option("--since", metavar="TIME", help="Only runs created at this time or later (RFC 3339).")
@click.option("--until", metavar="TIME", help="Only runs created before this time (RFC 3339).")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number.")
@with_context
def list_runs(
    context: CliContext,
    project: str | None,
    deployment: str | None,
    status: tuple[str, ...],
    labels: tuple[str, ...],
    since: str | None,
    until: str | None,
    limit: int,
) -> None:
    """List runs, newest first."""
    chosen, label = ",".join(status) or None, ",".join(labels) or None

    def read(page: int, size: int) -> Page[models.RunItem]:
        return context.client.list_runs(
            project, deployment, chosen, page, size, label=label, created_after=since, created_before=until
        )

    rows = list(items(read, limit))
    if not rows and project:
        context.client.get_project(project)  # fails if there is none
    context.output.rows(rows, COLUMNS, "No runs found. Start one: crewyard run PROJECT")


@runs.command("show")
@click.argument("run")
@with_context
def show(context: CliContext, run: str) -> None:
    """Show one run with its input, and its output or error."""
    shown = context.client.get_run(run)
    columns = [field("created_by"), Column("INPUT", lambda row: json.dumps(row["input"], ensure_ascii=False))]
    if shown["labels"]:
        columns.append(Column("LABELS", lambda row: label_pairs.text(row["labels"])))
    if models_text := _models(shown.get("usage")):
        columns.append(Column("MODELS", lambda row: models_text))
    if "queue_position" in shown:
        columns.append(field("queue_position", "QUEUE POSITION"))
    if shown.get("smoke"):
        columns.append(Column("SMOKE RUN", lambda row: "yes"))
    if "waiting" in shown:
        columns.append(Column("WAITING", lambda row: waiting(row["waiting"])))
    columns += [field(name) for name in ("entrypoint", "timeout", "rerun_of") if shown.get(name)]
    columns += [questions.column(request) for request in shown.get("input_requests", [])]
    if shown.get("cancel_requested"):
        columns.append(Column("CANCELING", lambda row: "yes"))
    if "output" in shown:
        columns.append(Column("OUTPUT", lambda row: _output(row["output"])))
    if "error" in shown:
        columns += [
            Column("REASON", lambda row: display(row["error"]["reason"])),
            Column("ERROR", lambda row: display(row["error"]["message"])),
        ]
        if "docs_url" in shown["error"]:
            columns.append(Column("DOCS", lambda row: row["error"]["docs_url"]))
    context.output.details(shown, (*COLUMNS, *columns))


# A value may begin with a hyphen, as a negative number does.
@runs.command("answer", context_settings={"ignore_unknown_options": True})
@click.argument("run")
@click.argument("answer", nargs=-1, required=True, metavar="[REQUEST] VALUE")
@with_context
def answer(context: CliContext, run: str, answer: tuple[str, ...]) -> None:
    """Answer a question of a run, which `crewyard runs show` lists.

    VALUE is one of the question's choices, text, or JSON where the question does not ask for text.
    """
    if len(answer) > 2:
        raise click.UsageError("give the question's id and one value; quote a value that has spaces")
    request = questions.open_request(context, run, answer[0] if len(answer) == 2 else None)
    value = questions.answer_value(answer[-1], request.get("schema"), request.get("choices"))
    context.output.item(
        context.client.answer_run(run, request["request_id"], value), f"answered {request['request_id']}"
    )


@runs.command("cancel")
@click.argument("run")
@with_context
def cancel(context: CliContext, run: str) -> None:
    """Cancel a run: its crew gets SIGTERM, and SIGKILL ten seconds later."""
    shown = context.client.cancel_run(run)
    context.output.item(
        shown, f"{run} is {shown['status']}" if shown["status"] == "canceled" else f"{run} is stopping"
    )


@runs.command("delete")
@click.argument("run")
@yes_option
@with_context
def delete(context: CliContext, run: str, yes: bool) -> None:
    """Erase an ended run, with its events and artifacts."""
    confirm(f"Erase {run} with its input, output, events and artifacts?", yes)
    context.client.erase_run(run)
    context.output.item({"id": run}, f"{run} is erased")


def _tokens(usage: Mapping[str, Any] | None) -> str:
    return "-" if usage is None else f"{usage['prompt_tokens'] + usage['completion_tokens']:,}"


def _cost(usage: Mapping[str, Any] | None) -> str:
    return "-" if usage is None or usage["cost"] is None else money(usage["cost"], usage["currency"])


def _models(usage: Mapping[str, Any] | None) -> str:
    if usage is None:
        return ""
    texts = []
    # An older API server sends none.
    for name, used in usage.get("models", {}).items():
        cost = "" if used["cost"] is None else f", {money(used['cost'], usage['currency'])}"
        texts.append(f"{name} {used['prompt_tokens']:,} in, {used['completion_tokens']:,} out{cost}")
    return "; ".join(texts)


def _output(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
