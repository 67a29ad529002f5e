"""`crewyard logs`: the log of a run, or the build log of a deployment."""

import click

from crewyard.cli import event_lines
from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import waiting


@click.command()
@click.argument("target", metavar="RUN | DEPLOYMENT")
@click.option("--follow", "-f", is_flag=True, help="Follow the log until it ends.")
@click.option("--events", "all_events", is_flag=True, help="Show all events of a run, not only its log.")
@with_context
def logs(context: CliContext, target: str, follow: bool, all_events: bool) -> None:
    """Show the log of a run (run_…) or the build log of a deployment (dep_…)."""
    client, output = context.client, context.output
    if target.startswith(("dep_", "dep-")):
        if all_events:
            raise click.UsageError("--events works for runs only")
        if context.as_json and not follow:
            output.item({"message": client.read_build_log(target)}, None)
            return
        for piece in client.follow_build_log(target) if follow else client.stream_build_log(target):
            if context.as_json:
                output.item({"message": piece}, None)
            else:
                output.text(piece)
        return
    if not follow and not all_events and not context.as_json:
        for piece in client.stream_run_log(target):
            output.text(piece)
        return
    # Event ids have no gaps, so the total is the last id. One stream needs one request for any number.
    last = None if follow else client.list_events(target, 1, 1).total
    if last == 0:
        return
    if follow and (run := client.get_run(target))["status"] == "pending":
        position = run.get("queue_position")
        cause = f": {waiting(run['waiting'])}" if "waiting" in run else ""
        output.status(f"{target} is pending{f', queue position {position}' if position else ''}{cause}")
    try:
        for event in client.follow_run(target):
            if all_events or context.as_json or event["type"] == "log":
                output.item(event, event_lines.line(event))
            if event["id"] == last:
                return
    except KeyboardInterrupt:
        output.status(f"\n{target} is still running. Stop it: crewyard runs cancel {target}")
        raise
