"""`crewyard audit`: the changes made through the API, their export, and the check of their chain."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from crewyard.audit_chain import AuditBroken, KnownRecordGone, RecordsMissing, verify
from crewyard.cli import read_text
from crewyard.cli.context import FAILED, CliContext, with_context
from crewyard.cli.output import Column, Output, display, field
from crewyard.cli.pages import items

_COLUMNS = (
    field("number"),
    field("time"),
    field("actor"),
    field("remote", "FROM"),
    Column("CALL", lambda row: display(f"{row['method']} {row['path']}")),
    field("target"),
    Column("OUTCOME", lambda row: display(row["outcome"] + (f" ({row['code']})" if row["code"] else ""))),
)
_FIELDS = {"number": int, "previous": str, "hash": str, "outcome": str}
"""The type of each field that the verification reads."""

_HEAD = re.compile(r"(\d+):([0-9a-f]{64})")


@click.command()
@click.option("--project", "-p", metavar="NAME", help="Only changes in this project.")
@click.option("--actor", metavar="WHO", help="Only changes of this actor, such as key:Xa81kd02Pq.")
@click.option("--from", "since", metavar="TIME", help="Only changes since this time.")
@click.option("--to", "until", metavar="TIME", help="Only changes before this time.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number.")
@click.option("--export", is_flag=True, help="Print all as JSON lines, the oldest first.")
@click.option("--verify", "verifies", is_flag=True, help="Check the hash chain of the whole log.")
@click.option("--known", metavar="NUMBER:HASH", help="With --verify: what an earlier --verify printed.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --verify: check this export instead.",
)
@with_context
def audit(
    context: CliContext,
    project: str | None,
    actor: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    export: bool,
    verifies: bool,
    known: str | None,
    file: Path | None,
) -> int:
    """Show who changed what through the API, newest first; export it; verify it."""
    if verifies:
        if project or actor or since or until or export:
            raise click.UsageError("--verify checks the whole log; leave the filters and --export out")
        return _verify(context, known, file)
    if known or file:
        raise click.UsageError("--known and --file require --verify")
    if export:
        lines = context.client.export_audit(project, actor, since, until)
        Output(as_json=True).rows(map(json.loads, lines), _COLUMNS, "")
        return 0
    rows = items(
        lambda page, size: context.client.list_audit(project, actor, since, until, page, size), limit
    )
    context.output.rows(rows, _COLUMNS, "No changes found.")
    return 0


def _verify(context: CliContext, known: str | None, file: Path | None) -> int:
    head = None if known is None else _HEAD.fullmatch(known)
    if known is not None and head is None:
        raise click.BadParameter("must be NUMBER:HASH, as an earlier --verify printed", param_hint="--known")
    if file is None:
        _require_whole_log(context)
    lines = context.client.export_audit() if file is None else read_text.lines(file)
    try:
        number, digest = verify(map(_record, lines), None if head is None else (int(head[1]), head[2]))
    except AuditBroken as error:
        if file is not None and isinstance(error, RecordsMissing):
            problem = f"{file} has a part of the audit log, or the log was changed: {error}; export all of it"
        else:
            problem = f"the audit log was changed: {error}"
        context.output.status(f"crewyard: {problem}", "red")
        return FAILED
    except KnownRecordGone as error:
        context.output.status(f"crewyard: {error}", "red")
        return FAILED
    result = {"number": number, "hash": digest}
    context.output.item(result, f"{number} records are intact. Keep this for --known: {number}:{digest}")
    return 0


def _require_whole_log(context: CliContext) -> None:
    """Raise UsageError if the caller is admin of some projects only: to it, the log has gaps."""
    caller = context.client.whoami()
    if caller["scopes"] is None and any("admin" in item["scopes"] for item in caller["projects"]):
        raise click.UsageError(
            "--verify needs the whole log, and this key sees the records of some projects only; use a key "
            "for all projects, or --file with an export that such a key made"
        )


def _record(line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
        if isinstance(record, dict) and all(type(record.get(key)) is kind for key, kind in _FIELDS.items()):
            return record
    except (ValueError, RecursionError):
        pass
    raise AuditBroken(f"{line[:60]!r} is not a record")
