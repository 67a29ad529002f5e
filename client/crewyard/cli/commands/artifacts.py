"""`crewyard artifacts`: list or download the files of a run."""

import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import click

from crewyard import exchange, retry
from crewyard.cli.context import CliContext, with_context
from crewyard.cli.download_directory import ArtifactDirectory
from crewyard.cli.escape import escape_control
from crewyard.cli.output import Column, age, field, size
from crewyard.cli.pages import items
from crewyard.errors import ApiError, ConnectionFailed, CrewyardError, LocalFileError
from crewyard.models import Artifact

_COLUMNS = (
    field("name"),
    Column("SIZE", lambda row: size(row["size"])),
    field("content_type", "TYPE"),
    field("partial"),
    age("created_at"),
)
_MAX_DOWNLOAD_ATTEMPTS = 4


@click.command()
@click.argument("run")
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@click.option(
    "--download",
    "-d",
    "directory",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    help="Download all artifacts, or the named ones, into this directory (default: artifacts-RUN).",
)
@click.option("--force", is_flag=True, help="Replace files that are in the directory.")
@with_context
def artifacts(
    context: CliContext, run: str, names: tuple[str, ...], directory: str | None, force: bool
) -> None:
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
    root = Path(directory or f"artifacts-{run}")
    downloads = ArtifactDirectory(root, force)
    found = {item["name"]: downloads.find(item["name"], item["size"], item["sha256"]) for item in selected}
    for name in (name for name, path in found.items() if path is None):
        downloads.target(name)  # all names before the first file
    try:
        root.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise LocalFileError(f"{root} is a file; give another directory") from None
    failed: list[str] = []
    total = sum(item["size"] for item in selected if found[item["name"]] is None)
    with context.output.progress(of_bytes=True) as progress:
        task = progress.add_task("downloading", total=total)
        for item in selected:
            progress.update(task, description=escape_control(item["name"])[:40])
            try:
                path = found[item["name"]] or _download(
                    context, run, item, downloads, lambda count: progress.advance(task, count)
                )
            except LocalFileError as error:  # another artifact has its name, such as `a` that of `a/b`
                failed.append(str(error))
                continue
            context.output.item({**item, "path": str(path)}, str(path))
    context.output.status(f"{len(selected) - len(failed)} artifacts are in {root}")
    if failed:
        raise LocalFileError("; ".join(failed))


def _download(
    context: CliContext,
    run: str,
    item: Artifact,
    downloads: ArtifactDirectory,
    on_progress: Callable[[int], None],
) -> Path:
    path = downloads.target(item["name"])
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
        downloads.store(part, path, item["name"])
    finally:
        part.unlink(missing_ok=True)
    return path


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
