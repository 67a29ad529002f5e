"""`crewyard logs`: what a run said, or how a deployment was built."""

import click

from crewyard.cli import events
from crewyard.cli.context import Context, with_context


@click.command()
@click.argument("target", metavar="RUN | DEPLOYMENT")
@click.option("--follow", "-f", is_flag=True, help="Goes on to the end.")
@click.option(
    "--events", "whole", is_flag=True, help="All events of a run, not only what it printed and logged."
)
@with_context
def logs(context: Context, target: str, follow: bool, whole: bool) -> None:
    """Shows the log of a run (run_…) or the build log of a deployment (dep_…)."""
    client, output = context.client, context.output
    if target.startswith("dep_"):
        if whole:
            raise click.UsageError("--events is for runs")
        if not follow:
            output.text(client.read_build_log(target))
            return
        for piece in client.follow_build_log(target):
            output.text(piece)
        return
    if not follow and not whole and not context.as_json:
        output.text(client.read_run_log(target))
        return
    last = None if follow else client.list_events(target, 1, 1).total
    for event in client.follow_run(target) if follow else _stored(context, target, last):
        if whole or context.as_json or event["type"] == "log":
            output.item(event, events.line(event))


def _stored(context: Context, run: str, total: int | None):  # type: ignore[no-untyped-def]
    from crewyard.cli.pages import items

    return items(lambda page, size: context.client.list_events(run, page, size), total)
