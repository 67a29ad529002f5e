"""`crewyard deploy`: packs, uploads, follows the build to its end."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from crewyard.cli.commands.deployments import COLUMNS
from crewyard.cli.context import FAILED, Context, project_option, with_context
from crewyard.cli.output import size
from crewyard.cli.pack import Packed, pack
from crewyard.cli.source_tree import Tree, committed, git_text, read_tree
from crewyard.errors import CrewyardError
from crewyard.models import Deployment
from crewyard.plan.config.configuration import read_configuration
from crewyard.plan.errors import PlanError
from crewyard.plan.exclude import left_out

_CHUNK = 256 * 1024
_IN_MEMORY = 8 << 20


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@project_option
@click.option("--crew", metavar="NAME", help="Which [deployments.<name>] of crew.toml.")
@click.option("--message", "-m", metavar="TEXT", help="What it is; else the commit's subject.")
@click.option("--preview", is_flag=True, help="Builds it to be run by its id; it never becomes active.")
@click.option("--override", is_flag=True, help="Also where the project follows a git repository.")
@click.option("--rollback", metavar="DEPLOYMENT", help="Deploys nothing: makes an earlier one active again.")
@click.option("--no-wait", is_flag=True, help="Does not follow the build.")
@with_context
def deploy(
    context: Context,
    directory: Path,
    project: str | None,
    crew: str | None,
    message: str | None,
    preview: bool,
    override: bool,
    rollback: str | None,
    no_wait: bool,
) -> None:
    """Deploys the crew of a directory. Exit code 1 where the build fails; what was active stays active."""
    client, output = context.client, context.output
    if rollback:
        output.one(client.roll_back(rollback), COLUMNS)
        return
    name, tree = context.named_project(project), read_tree(directory)
    url = _upload(context, name, tree, _excluded(tree, crew))
    body: dict[str, Any] = {"build_context_url": url}
    told = message or git_text(tree.root, "log", "-1", "--format=%s")
    # A tree with changes is not its commit.
    given = {"crew": crew, "message": told, "git_sha": committed(tree.root)}
    body |= {key: value for key, value in given.items() if value}
    body |= {"preview": {}} if preview else {}
    body |= {"override": True} if override else {}
    made = client.create_deployment(name, **body)
    if no_wait:
        output.one(client.get_deployment(made["id"]), COLUMNS)
        return
    output.say(f"{made['id']} is {made['status']}", "bold")
    try:
        for piece in client.follow_build_log(made["id"]):
            if not context.as_json:
                output.text(piece)
    except KeyboardInterrupt:
        output.say(f"\n{made['id']} goes on. Follow it: crewyard logs -f {made['id']}")
        raise
    _tell(context, client.get_deployment(made["id"]))


def _excluded(tree: Tree, crew: str | None) -> dict[str, str]:
    """What the configuration leaves out, as the build does, which also says what is wrong with the file."""
    try:
        return left_out(tree, read_configuration(tree, crew).exclude)
    except PlanError:
        return {}


def _upload(context: Context, project: str, tree: Tree, excluded: dict[str, str]) -> str:
    client, output = context.client, context.output
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as archive:
        packed: Packed = pack(tree, excluded, archive)
        output.say(f"packed {packed.files} files, {size(packed.size)}")
        upload = client.announce_upload(project, packed.size, packed.sha256)
        with output.progress(of_bytes=True) as progress:
            task = progress.add_task("uploading", total=packed.size)

            def body() -> Iterator[bytes]:
                progress.update(task, completed=0)
                yield from _chunks(archive, lambda count: progress.advance(task, count))

            client.send_upload(upload, body)
    return upload["build_context_url"]


def _chunks(archive: IO[bytes], told: Any) -> Iterator[bytes]:
    archive.seek(0)
    while chunk := archive.read(_CHUNK):
        yield chunk
        told(len(chunk))


def _tell(context: Context, deployment: Deployment) -> None:
    output = context.output
    output.one(deployment, COLUMNS)
    if deployment["status"] in ("pending", "building"):
        raise CrewyardError(f"its log ended, but {deployment['id']} is {deployment['status']}")
    if deployment["status"] != "failed":
        output.say(f"Run it: crewyard run {deployment['project']}")
        return
    error = deployment.get("error")
    if error and not context.as_json:
        output.say(f"{error['reason']}: {error['message']}", "red")
        if error.get("hint"):
            output.say(error["hint"])
        if error.get("docs_url"):
            output.say(f"Read on: {error['docs_url']}")
    raise SystemExit(FAILED)
