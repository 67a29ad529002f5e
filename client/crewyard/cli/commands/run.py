"""`crewyard run` and `rerun`: start a run and follow it; the exit code is that of the run."""

import json
import sys
from pathlib import Path

import click

from crewyard import models
from crewyard.cli import event_lines, json_object, label_pairs, questions
from crewyard.cli.commands.runs import COLUMNS
from crewyard.cli.context import CANCELED, FAILED, CliContext, normal_path, with_context
from crewyard.errors import CrewyardError


@click.command()
@click.argument("target", metavar="PROJECT | DEPLOYMENT", required=False)
@json_object.input_options()
@click.option(
    "--entrypoint",
    metavar="NAME",
    callback=normal_path,
    help="A crew or graph of the configuration by name; also module:object or a file.",
)
@click.option("--timeout", metavar="TIME", help="Timeout of the run, such as 30m.")
@click.option("--config", "config_text", metavar="JSON", help="Config of a graph, a JSON object.")
@click.option("--context", "context_text", metavar="JSON", help="Context of a graph, a JSON object.")
@label_pairs.option("Label of the run; repeatable.")
@click.option("--no-wait", is_flag=True, help="Do not follow the run.")
@click.option("--key", "idempotency_key", metavar="TEXT", help="Idempotency key: start the run only once.")
@with_context
def run(
    context: CliContext,
    target: str | None,
    text: str | None,
    input_file: Path | None,
    entrypoint: str | None,
    timeout: str | None,
    config_text: str | None,
    context_text: str | None,
    labels: tuple[str, ...],
    no_wait: bool,
    idempotency_key: str | None,
) -> None:
    """Run a project's active deployment, or a deployment by its id, and follow its events.

    A question of the crew is asked at the terminal, if there is one; else `crewyard runs answer` answers it.
    Ctrl-C stops following, not the run; `crewyard runs cancel` stops it.
    Exit codes: 0 succeeded, 1 failed, 4 canceled.
    """
    inputs = json_object.read_inputs(text, input_file)
    created = context.client.start_run(
        context.named_project(target),
        inputs,
        entrypoint=entrypoint,
        timeout=timeout,
        idempotency_key=idempotency_key,
        config=json_object.parse(config_text, "--config"),
        context=json_object.parse(context_text, "--context"),
        labels=label_pairs.parse(labels),
    )
    _follow(context, created, no_wait)


@click.command()
@click.argument("run", metavar="RUN")
@json_object.input_options(
    "Other inputs of the crew, a JSON object.", "File with other inputs (- for standard input)."
)
@click.option("--deployment", metavar="ID | PROJECT", help="Another deployment, or a project's active one.")
@click.option(
    "--entrypoint", metavar="NAME | MODULE:OBJECT", callback=normal_path, help="Another entrypoint."
)
@click.option("--no-wait", is_flag=True, help="Do not follow the run.")
@click.option("--key", "idempotency_key", metavar="TEXT", help="Idempotency key: start the run only once.")
@with_context
def rerun(
    context: CliContext,
    run: str,
    text: str | None,
    input_file: Path | None,
    deployment: str | None,
    entrypoint: str | None,
    no_wait: bool,
    idempotency_key: str | None,
) -> None:
    """Start a run like an earlier one, and follow it as `crewyard run` does.

    It has the input, entrypoint, config, context, timeout and labels of the earlier one.
    """
    inputs = json_object.read_inputs(text, input_file)
    created = context.client.rerun(run, inputs, deployment, idempotency_key, entrypoint=entrypoint)
    _follow(context, created, no_wait)


def _follow(context: CliContext, created: models.RunCreated, no_wait: bool) -> None:
    """Follow the run to its end and exit with its code; with `no_wait`, only show it."""
    client, output = context.client, context.output
    if no_wait:
        output.details(client.get_run(created["id"]), COLUMNS)
        return
    output.status(f"{created['id']} is {created['status']}", "bold")
    interactive = not context.as_json and sys.stdin.isatty() and sys.stderr.isatty()
    calls = []
    try:
        for event in client.follow_run(created["id"]):
            output.item(event, event_lines.line(event))
            if event["type"] == "usage":
                calls.append(event["data"])
            if event["type"] == "input.requested":
                questions.handle(context, created["id"], event["data"], interactive)
    except (KeyboardInterrupt, click.Abort):
        output.status(f"\n{created['id']} is still running. Follow it: crewyard logs -f {created['id']}")
        output.status(f"Stop it: crewyard runs cancel {created['id']}")
        raise
    if line := event_lines.tokens(calls):
        output.status(line)
    finished = client.get_run(created["id"])
    if not context.as_json and finished["status"] == "succeeded" and finished.get("output") is not None:
        value = finished["output"]
        output.text(
            f"{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)}\n"
        )
    if finished["status"] == "failed":
        link = finished.get("error", {}).get("docs_url")
        if link:
            output.status(f"See {link}")
        raise SystemExit(FAILED)
    if finished["status"] == "canceled":
        raise SystemExit(CANCELED)
    if finished["status"] != "succeeded":
        raise CrewyardError(
            f"the events ended, but {created['id']} is {finished['status']}; see crewyard runs show"
        )
