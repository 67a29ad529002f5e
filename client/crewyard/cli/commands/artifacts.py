"""`crewyard artifacts`: list or download the files of a run."""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import click

from crewyard import exchange, retry
from crewyard.cli.context import CliContext, with_context
from crewyard.cli.escape import escape_control
from crewyard.cli.output import Column, age, field, size
from crewyard.cli.pages import items
from crewyard.errors import ApiError, ConnectionFailed, CrewyardError
from crewyard.models import Artifact

_COLUMNS = (
    field("name"),
    Column("SIZE", lambda row: size(row["size"])),
    field("content_type", "TYPE"),
    field("partial"),
    age("created_at"),
)
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_MAX_DOWNLOAD_ATTEMPTS = 4


@click.command()
@click.argument("run")
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option(
    "--download",
    "-d",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Download all artifacts, or the named ones, into this directory.",
)
@with_context
def artifacts(context: CliContext, run: str, names: tuple[str, ...], directory: Path | None) -> None:
    """List or download the artifacts of a run."""
    selected = list(items(lambda page, per: context.client.list_artifacts(run, page, per), None))
    if names:
        existing = {item["name"] for item in selected}
        missing = [name for name in names if name not in existing]
        if missing:
            raise CrewyardError(f"{run} has no artifact {missing[0]}; list them: crewyard artifacts {run}")
        selected = [item for item in selected if item["name"] in names]
    if directory is None:
        context.output.rows(selected, _COLUMNS, f"{run} has no artifacts.")
        return
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[tuple[int, int], str] = {}
    with context.output.progress(of_bytes=True) as progress:
        task = progress.add_task("downloading", total=sum(item["size"] for item in selected))
        for item in selected:
            progress.update(task, description=escape_control(item["name"])[:40])
            path = _download(
                context, run, item, directory, written, lambda count: progress.advance(task, count)
            )
            context.output.item({**item, "path": str(path)}, str(path))
    context.output.status(f"{len(selected)} artifacts are in {directory}")


def target(directory: Path, name: str, windows: bool = os.name == "nt") -> Path:
    """Return the file for an artifact, never outside `directory`. Raises CrewyardError."""
    parts = name.split("/")
    wrong = any(part in ("", ".", "..") for part in parts) or "\0" in name
    if windows:
        wrong = wrong or bool(re.search(r'[<>:"\\|?*\x00-\x1f]', name))
        wrong = wrong or any(_RESERVED.fullmatch(part) or part[-1] in ". " for part in parts)
    if wrong:
        raise CrewyardError(f"the artifact {name!r} cannot be written here: it is not a file name")
    return directory.joinpath(*parts)


def _download(
    context: CliContext,
    run: str,
    item: Artifact,
    directory: Path,
    written: dict[tuple[int, int], str],
    on_progress: Callable[[int], None],
) -> Path:
    root = directory.resolve()
    path = target(root, item["name"])
    existing = next(parent for parent in path.parents if parent.exists())
    if existing.resolve() != existing:
        raise CrewyardError(f"{existing} is a link; artifacts are not downloaded through links")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for attempt in range(1, _MAX_DOWNLOAD_ATTEMPTS + 1):
            try:
                _fetch(context, run, item, part, on_progress)
                break
            except (ConnectionFailed, ApiError) as problem:
                time.sleep(
                    exchange.retry_delay(problem, attempt + retry.MAX_ATTEMPTS - _MAX_DOWNLOAD_ATTEMPTS, True)
                )
        _rename(part, path, item["name"], written)
    finally:
        part.unlink(missing_ok=True)
    return path


def _rename(part: Path, path: Path, name: str, written: dict[tuple[int, int], str]) -> None:
    """Rename the file, unless another artifact of this download has that name here (`a.md`, `A.md`)."""
    if path.exists() and (existing := path.stat()) and (existing.st_dev, existing.st_ino) in written:
        other = written[existing.st_dev, existing.st_ino]
        raise CrewyardError(f"{name} and {other} are the same name here; download them into two directories")
    part.replace(path)
    status = path.stat()
    written[status.st_dev, status.st_ino] = name


def _fetch(
    context: CliContext, run: str, item: Artifact, part: Path, on_progress: Callable[[int], None]
) -> None:
    digest, received = hashlib.sha256(), 0
    with part.open("wb") as file, context.client.open_artifact(run, item["name"]) as chunks:
        for chunk in chunks:
            received += len(chunk)
            digest.update(chunk)
            file.write(chunk)
            on_progress(len(chunk))
    if received != item["size"] or digest.hexdigest() != item["sha256"]:
        on_progress(-received)
        raise ConnectionFailed(f"{item['name']} is incomplete: {received} of {item['size']} bytes arrived")
