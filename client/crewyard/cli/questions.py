"""Questions of a run at the terminal, and the value of an answer. Called by `run` and `runs answer`."""

import json
from collections.abc import Mapping
from typing import Any

import click

from crewyard.cli.context import CliContext
from crewyard.cli.escape import escape_control
from crewyard.cli.output import Column
from crewyard.errors import ApiError, ConnectionFailed
from crewyard.models import InputRequest


def answer_value(text: str, schema: Mapping[str, Any] | None, choices: list[Any] | None) -> Any:
    """Return the JSON value that a text stands for. Pure.

    It is the choice that reads so, else the text itself if the schema wants text, else JSON, else the text.
    """
    for choice in choices or ():
        if text in (choice, json.dumps(choice, ensure_ascii=False)):
            return choice
    if (schema or {}).get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _choices(choices: list[Any] | None) -> str:
    """Return the choices of a question as a person answers them; empty without any."""
    shown = (
        text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in choices or ()
    )
    return f" [{', '.join(shown)}]" if choices else ""


def column(request: InputRequest) -> Column:
    """Return the column that shows a question."""
    return Column(
        f"QUESTION {request['request_id']}",
        lambda _: f"{request['prompt']}{_choices(request.get('choices'))}",
    )


def open_request(context: CliContext, run: str, request: str | None) -> InputRequest:
    """Return an open question of the run: the only one if `request` is None. Raises UsageError."""
    waiting = context.client.get_run(run).get("input_requests", [])
    if request is None and len(waiting) == 1:
        return waiting[0]
    for item in waiting:
        if item["request_id"] == request:
            return item
    ids = ", ".join(item["request_id"] for item in waiting)
    if request is None and waiting:
        raise click.UsageError(f"{run} asks several questions, {ids}: name one of them")
    asks = f"it asks {ids}" if waiting else "it asks none now"
    raise click.UsageError(f"{run} has no open question{f' {request}' if request else ''}; {asks}")


def handle(context: CliContext, run: str, data: Mapping[str, Any], interactive: bool) -> None:
    """Ask the question of an event at the terminal, or print how to answer it. Raises Abort at Ctrl-C."""
    request_id = str(data.get("request_id"))
    how = f"Answer it: crewyard runs answer {run} {request_id} VALUE"
    if not interactive:
        context.output.status(f"{run} asks: {data.get('prompt')}{_choices(data.get('choices'))}", "bold")
        context.output.status(how)
        return
    while True:
        try:
            request = open_request(context, run, request_id)
        except click.UsageError:
            return  # answered elsewhere meanwhile
        context.output.status(request["prompt"], "bold")
        choices = request.get("choices")
        try:
            answer = f"Answer{escape_control(_choices(choices))}"
            text = click.prompt(answer, default="", show_default=False, err=True)
        except click.Abort:
            context.output.status(f"\n{how}")
            raise
        try:
            context.client.answer_run(run, request_id, answer_value(text, request.get("schema"), choices))
        except (ApiError, ConnectionFailed) as error:
            context.output.status(str(error))
            if isinstance(error, ConnectionFailed) or error.status == 400 or error.passing:
                continue
        return
