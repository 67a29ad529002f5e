"""`crewyard artifacts`: the files that a run left."""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import click

from crewyard import exchange, retry
from crewyard.cli.context import Context, with_context
from crewyard.cli.escape import harmless
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
_TRIES = 4


@click.command()
@click.argument("run")
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option(
    "--download",
    "-d",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Downloads them (all, or those named) into this directory.",
)
@with_context
def artifacts(context: Context, run: str, names: tuple[str, ...], directory: Path | None) -> None:
    """Lists a run's artifacts, or downloads them."""
    found = list(items(lambda page, per: context.client.list_artifacts(run, page, per), None))
    if names:
        there = {item["name"] for item in found}
        missing = [name for name in names if name not in there]
        if missing:
            raise CrewyardError(f"{run} has no artifact {missing[0]}; see them: crewyard artifacts {run}")
        found = [item for item in found if item["name"] in names]
    if directory is None:
        context.output.rows(found, _COLUMNS, f"{run} has no artifacts.")
        return
    directory.mkdir(parents=True, exist_ok=True)
    written: dict[tuple[int, int], str] = {}
    with context.output.progress(of_bytes=True) as progress:
        task = progress.add_task("downloading", total=sum(item["size"] for item in found))
        for item in found:
            progress.update(task, description=harmless(item["name"])[:40])
            place = _download(
                context, run, item, directory, written, lambda count: progress.advance(task, count)
            )
            context.output.item({**item, "path": str(place)}, str(place))
    context.output.say(f"{len(found)} artifacts are in {directory}")


def target(directory: Path, name: str, windows: bool = os.name == "nt") -> Path:
    """Where an artifact goes, never outside of the directory. Raises CrewyardError."""
    parts = name.split("/")
    wrong = any(part in ("", ".", "..") for part in parts) or "\0" in name
    if windows:
        wrong = wrong or bool(re.search(r'[<>:"\\|?*\x00-\x1f]', name))
        wrong = wrong or any(_RESERVED.fullmatch(part) or part[-1] in ". " for part in parts)
    if wrong:
        raise CrewyardError(f"the artifact {name!r} cannot be written here: it is no file name")
    return directory.joinpath(*parts)


def _download(
    context: Context,
    run: str,
    item: Artifact,
    directory: Path,
    written: dict[tuple[int, int], str],
    told: Callable[[int], None],
) -> Path:
    root = directory.resolve()
    place = target(root, item["name"])
    there = next(parent for parent in place.parents if parent.exists())
    if there.resolve() != there:
        raise CrewyardError(f"{there} is a link; nothing is downloaded through it")
    place.parent.mkdir(parents=True, exist_ok=True)
    waiting = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        for attempt in range(1, _TRIES + 1):
            try:
                _fetch(context, run, item, waiting, told)
                break
            except (ConnectionFailed, ApiError) as problem:
                time.sleep(exchange.wait(problem, attempt + retry.ATTEMPTS - _TRIES, True))
        _place(waiting, place, item["name"], written)
    finally:
        waiting.unlink(missing_ok=True)
    return place


def _place(waiting: Path, place: Path, name: str, written: dict[tuple[int, int], str]) -> None:
    """Gives a file its name, unless an artifact has it here that was written just now (`a.md`, `A.md`)."""
    if place.exists() and (there := place.stat()) and (there.st_dev, there.st_ino) in written:
        other = written[there.st_dev, there.st_ino]
        raise CrewyardError(f"{name} and {other} are the same name here; download them into two directories")
    waiting.replace(place)
    made = place.stat()
    written[made.st_dev, made.st_ino] = name


def _fetch(context: Context, run: str, item: Artifact, waiting: Path, told: Callable[[int], None]) -> None:
    digest, got = hashlib.sha256(), 0
    with waiting.open("wb") as file, context.client.open_artifact(run, item["name"]) as chunks:
        for chunk in chunks:
            got += len(chunk)
            digest.update(chunk)
            file.write(chunk)
            told(len(chunk))
    if got != item["size"] or digest.hexdigest() != item["sha256"]:
        told(-got)
        raise ConnectionFailed(f"{item['name']} did not arrive whole: {got} of {item['size']} bytes")
