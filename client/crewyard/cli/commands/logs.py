"""`crewyard logs`: what a run said, or how a deployment was built."""

import click

from crewyard.cli import event_lines
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
        pieces = client.follow_build_log(target) if follow else [client.read_build_log(target)]
        for piece in pieces:
            if context.as_json:
                output.item({"message": piece}, None)
            else:
                output.text(piece)
        return
    if not follow and not whole and not context.as_json:
        output.text(client.read_run_log(target))
        return
    # Their ids have no gaps: as many as there are now. One stream is one request, however many they are.
    last = None if follow else client.list_events(target, 1, 1).total
    if last == 0:
        return
    if follow and (found := client.get_run(target))["status"] == "pending":
        place = found.get("queue_position")
        output.say(f"{target} is pending{f', place {place} in the queue' if place else ''}")
    try:
        for event in client.follow_run(target):
            if whole or context.as_json or event["type"] == "log":
                output.item(event, event_lines.line(event))
            if event["id"] == last:
                return
    except KeyboardInterrupt:
        output.say(f"\n{target} goes on. Stop it: crewyard runs cancel {target}")
        raise
