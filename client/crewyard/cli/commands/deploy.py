"""`crewyard deploy`: pack, upload, and follow the build."""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from crewyard.cli.commands.deployments import COLUMNS
from crewyard.cli.context import FAILED, CliContext, normal_path, project_option, with_context
from crewyard.cli.output import size
from crewyard.cli.pack import PackedArchive, pack
from crewyard.cli.source_tree import SourceTree, clean_commit, git_text, read_tree
from crewyard.errors import CrewyardError, NotFound
from crewyard.models import Deployment
from crewyard.plan.config.configuration import CONFIGURATION_FILES, read_configuration
from crewyard.plan.errors import PlanError
from crewyard.plan.exclude import excluded_paths
from crewyard.settings import PROJECT_FILE, SettingsError, remember_project

_CHUNK = 256 * 1024
_IN_MEMORY = 8 << 20
_MAX_NAME_CHARS = 52
_MAX_MESSAGE_CHARS = 4096


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@project_option
@click.option(
    "--crew",
    metavar="NAME",
    callback=normal_path,
    help="The crew or graph of the configuration to deploy; also module:object or a file.",
)
@click.option("--message", "-m", metavar="TEXT", help="Description (default: the commit's subject).")
@click.option("--preview", is_flag=True, help="Build a deployment to run by its id; it never becomes active.")
@click.option("--override", is_flag=True, help="Deploy even if the project follows a git repository.")
@click.option("--rollback", metavar="DEPLOYMENT", help="Activate an earlier deployment; do not deploy.")
@click.option("--no-wait", is_flag=True, help="Do not follow the build.")
@with_context
def deploy(
    context: CliContext,
    directory: Path,
    project: str | None,
    crew: str | None,
    message: str | None,
    preview: bool,
    override: bool,
    rollback: str | None,
    no_wait: bool,
) -> None:
    """Deploy the crew in a directory.

    Without a project it asks for one, creates it, and remembers it in .crewyard/project of the directory.
    Exit code 1 if the build fails; the active deployment stays active.
    """
    client, output = context.client, context.output
    if rollback is not None:
        output.details(client.roll_back(rollback), COLUMNS)
        return
    tree = read_tree(directory)
    name = _project(context, project, tree.root)
    for note in tree.notes:
        output.status(f"note: {note}", "yellow")
    url = _upload(context, name, tree, _excluded(tree, crew))
    body: dict[str, Any] = {"build_context_url": url}
    subject = git_text(tree.root, "log", "-1", "--format=%s")
    description = message or (subject and subject[:_MAX_MESSAGE_CHARS])
    # A tree with uncommitted changes has no git_sha.
    optional = {"crew": crew, "message": description, "git_sha": clean_commit(tree.root)}
    body |= {key: value for key, value in optional.items() if value is not None}
    body |= {"preview": {}} if preview else {}
    body |= {"override": True} if override else {}
    created = client.create_deployment(name, **body)
    if no_wait:
        output.details(client.get_deployment(created["id"]), COLUMNS)
        return
    output.status(f"{created['id']} is {created['status']}", "bold")
    try:
        for piece in client.follow_build_log(created["id"]):
            if not context.as_json:
                output.text(piece)
    except KeyboardInterrupt:
        output.status(f"\n{created['id']} is still building. Follow it: crewyard logs -f {created['id']}")
        raise
    _print_result(context, client.get_deployment(created["id"]))


def _project(context: CliContext, given: str | None, directory: Path) -> str:
    """Return the project to deploy to; in a terminal, ask for one where none is named, and create it."""
    try:
        return context.named_project(given, directory)
    except SettingsError:
        is_missing = given is None and not (directory / PROJECT_FILE).exists()
        if not is_missing or context.as_json or not sys.stdin.isatty():
            raise
    client, output = context.client, context.output
    name = str(click.prompt("Project of this directory", default=_proposed_name(directory), err=True))
    try:
        client.get_project(name)
    except NotFound:
        click.confirm(f"There is no project {name}. Create it?", default=True, abort=True, err=True)
        client.create_project(name)
    try:
        remember_project(directory, name)
    except OSError as error:
        output.status(f"note: {directory / PROJECT_FILE} cannot be written: {error.strerror}", "yellow")
    return name


def _proposed_name(directory: Path) -> str | None:
    """Return a name for the project of a directory; None where no character of its name may be in one."""
    words = re.sub("[^a-z0-9]+", "-", directory.name.lower()).strip("-")
    return words[:_MAX_NAME_CHARS].strip("-") or None


def _excluded(tree: SourceTree, crew: str | None) -> dict[str, str]:
    """Return the files that the configuration excludes, except itself.

    {} if it is invalid, which the build then reports.
    """
    try:
        excluded = excluded_paths(tree, read_configuration(tree, crew).exclude)
    except PlanError:
        return {}
    return {path: pattern for path, pattern in excluded.items() if path not in CONFIGURATION_FILES}


def _upload(context: CliContext, project: str, tree: SourceTree, excluded: dict[str, str]) -> str:
    client, output = context.client, context.output
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as archive:
        packed: PackedArchive = pack(tree, excluded, archive)
        output.status(f"packed {packed.files} files, {size(packed.size)}")
        upload = client.announce_upload(project, packed.size, packed.sha256)
        with output.progress(of_bytes=True) as progress:
            task = progress.add_task("uploading", total=packed.size)

            def body() -> Iterator[bytes]:
                progress.update(task, completed=0)
                yield from _chunks(archive, lambda count: progress.advance(task, count))

            client.send_upload(upload, body)
    return upload["build_context_url"]


def _chunks(archive: IO[bytes], on_progress: Any) -> Iterator[bytes]:
    archive.seek(0)
    while chunk := archive.read(_CHUNK):
        yield chunk
        on_progress(len(chunk))


def _print_result(context: CliContext, deployment: Deployment) -> None:
    output = context.output
    output.details(deployment, COLUMNS)
    if deployment["status"] in ("pending", "building"):
        raise CrewyardError(
            f"the build log ended, but {deployment['id']} is still {deployment['status']}; "
            f"see crewyard deployments show {deployment['id']}"
        )
    if deployment["status"] != "failed":
        is_active = deployment["status"] == "active"
        output.status(f"Run it: crewyard run {deployment['project' if is_active else 'id']}")
        return
    error = deployment.get("error")
    if error and not context.as_json:
        output.status(f"{error['reason']}: {error['message']}", "red")
        if error.get("hint"):
            output.status(error["hint"])
        if error.get("docs_url"):
            output.status(f"See {error['docs_url']}")
    raise SystemExit(FAILED)
