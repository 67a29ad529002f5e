"""`crewyard run`: starts a run and follows it. Its exit code is the run's."""

import json
from pathlib import Path
from typing import Any

import click

from crewyard.cli import event_lines, read_text
from crewyard.cli.commands.runs import COLUMNS
from crewyard.cli.context import CANCELED, FAILED, Context, with_context
from crewyard.errors import CrewyardError


@click.command()
@click.argument("target", metavar="PROJECT | DEPLOYMENT", required=False)
@click.option("--input", "text", metavar="JSON", help="The crew's inputs, a JSON object.")
@click.option(
    "--input-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="A file with the inputs (- for standard input).",
)
@click.option("--entrypoint", metavar="MODULE:OBJECT", help="Another one than the configuration's.")
@click.option("--timeout", metavar="TIME", help="How long it may take, such as 30m.")
@click.option("--no-wait", is_flag=True, help="Does not follow it.")
@click.option(
    "--key", "idempotency_key", metavar="TEXT", help="Starts it once, however often it is asked for."
)
@with_context
def run(
    context: Context,
    target: str | None,
    text: str | None,
    input_file: Path | None,
    entrypoint: str | None,
    timeout: str | None,
    no_wait: bool,
    idempotency_key: str | None,
) -> None:
    """Runs a project's active deployment, or a deployment by its id, and follows its events.

    With Ctrl-C the run goes on; `crewyard runs cancel` stops it.
    Exit codes: 0 succeeded, 1 failed, 4 canceled.
    """
    if text is not None and input_file is not None:
        raise click.UsageError("give one of --input and --input-file")
    given = _inputs(text, input_file)
    client, output = context.client, context.output
    made = client.start_run(
        context.named_project(target),
        given,
        entrypoint=entrypoint,
        timeout=timeout,
        idempotency_key=idempotency_key,
    )
    if no_wait:
        output.one(client.get_run(made["id"]), COLUMNS)
        return
    output.say(f"{made['id']} is {made['status']}", "bold")
    try:
        for event in client.follow_run(made["id"]):
            output.item(event, event_lines.line(event))
    except KeyboardInterrupt:
        output.say(f"\n{made['id']} goes on. Follow it: crewyard logs -f {made['id']}")
        output.say(f"Stop it: crewyard runs cancel {made['id']}")
        raise
    ended = client.get_run(made["id"])
    if not context.as_json and ended["status"] == "succeeded" and ended.get("output") is not None:
        value = ended["output"]
        output.text(
            f"{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)}\n"
        )
    if ended["status"] == "failed":
        link = ended.get("error", {}).get("docs_url")
        if link:
            output.say(f"Read on: {link}")
        raise SystemExit(FAILED)
    if ended["status"] == "canceled":
        raise SystemExit(CANCELED)
    if ended["status"] != "succeeded":
        raise CrewyardError(
            f"its events ended, but {made['id']} is {ended['status']}; see crewyard runs show"
        )


def _inputs(text: str | None, file: Path | None) -> dict[str, Any] | None:
    """The inputs as an object. Raises UsageError that says where the JSON is wrong."""
    where = "--input"
    if file is not None:
        where = "standard input" if str(file) == "-" else str(file)
        text = read_text.read(file)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{where} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise click.UsageError(f'{where} must be a JSON object, such as {{"topic": "boats"}}')
    return found
