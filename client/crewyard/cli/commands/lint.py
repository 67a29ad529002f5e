"""`crewyard lint`: the build plan of a source tree, without a build."""

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from crewyard.cli.context import FAILED, CliContext, normal_path, with_context
from crewyard.cli.output import Column, field, size
from crewyard.cli.source_tree import SourceTree, read_outside, read_tree
from crewyard.plan.errors import PlanError
from crewyard.plan.lfs_pointer import pointer_notes
from crewyard.plan.make import SUPPORTED_PYTHONS, Planned, make_plan
from crewyard.plan.python import VERSION
from crewyard.plan.source import PATH_HINT, path_problem, without_paths

PYTHONS = SUPPORTED_PYTHONS
_NOT_ASKED = (
    f"note: checked for Python {PYTHONS[0]} to {PYTHONS[-1]}; "
    "pass --python for each version that your installation offers"
)
_USUAL_BYTES = 100 << 20
"""The default of the limit `context_bytes`, of which the archive of a larger source may have more."""
_FIELDS = (
    field("framework"),
    field("entrypoint"),
    Column("CHOICES", lambda row: ", ".join(row["entrypoints"]) or "-"),
    field("python"),
    field("timeout"),
    field("dependencies"),
    field("env_required", "NEEDS"),
    Column("LEFT OUT", lambda row: f"{len(row['left_out'])} files" if row["left_out"] else "-"),
)


def _checked_versions(
    _context: click.Context, _parameter: click.Parameter, versions: tuple[str, ...]
) -> tuple[str, ...]:
    for version in versions:
        if not VERSION.fullmatch(version):
            raise click.BadParameter(f"{version!r} is not a version such as 3.11")
    return versions


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option(
    "--crew",
    metavar="NAME",
    callback=normal_path,
    help="The crew or graph of the configuration that is the default; also module:object or a file.",
)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="VERSION",
    callback=_checked_versions,
    help="A Python version that the installation offers; repeat for several. Without it: 3.11 to 3.14.",
)
@click.option("--private-index", is_flag=True, help="Check as for a project with a private package index.")
@click.option(
    "--requirement",
    "requirements",
    metavar="LINE",
    multiple=True,
    help="Check as for a project that adds this package (projects set --requirement). Repeatable.",
)
@click.option(
    "--dockerfile",
    metavar="PATH",
    default="",
    help="Check as for a project whose spec.build.dockerfile is this path in the directory.",
)
@with_context
def lint(
    context: CliContext,
    directory: Path,
    crew: str | None,
    pythons: tuple[str, ...],
    private_index: bool,
    requirements: tuple[str, ...],
    dockerfile: str,
) -> None:
    """Show how a crew would be built and run, or the error in its configuration."""
    if not pythons and not context.as_json:
        context.output.status(_NOT_ASKED)
    try:
        base, outside = read_outside(directory)
        tree = read_tree(directory)
        planned = make_plan(
            tree,
            crew,
            pythons or PYTHONS,
            private_index,
            base=base,
            outside=outside,
            dockerfile=dockerfile,
            requirements=requirements,
        )
        source = without_paths(tree, planned.excluded)
        _check_paths(source)
        pointers = pointer_notes(source, lambda path: tree.file_path(path).stat().st_size)
        notes = (
            *tree.notes,
            *planned.notes,
            *_image_notes(planned),
            *_size_notes(tree, source),
            *pointers,
            *_outside_notes(planned, base, outside or {}),
        )
    except PlanError as error:
        if context.as_json:
            context.output.item({"reason": error.reason, "message": error.message, "hint": error.hint}, None)
        else:
            context.output.status(f"{error.reason}: {error.message}", "red")
            if error.hint:
                context.output.status(error.hint)
        raise SystemExit(FAILED) from None
    if not context.as_json:
        for note in notes:
            context.output.status(f"note: {note}", "yellow")
    context.output.details(_row(planned, notes), _FIELDS)


def _check_paths(paths: Iterable[str]) -> None:
    """Raise PlanError for a path that no build takes."""
    for path in paths:
        if (problem := path_problem(path)) is not None:
            raise PlanError("ContextInvalid", f"the path {path!r} {problem}", PATH_HINT)


def _size_notes(tree: SourceTree, paths: Iterable[str]) -> list[str]:
    """Return a note on a source that an installation with the default limits may refuse."""
    total = sum(tree.file_path(path).stat().st_size for path in paths)
    if total <= _USUAL_BYTES:
        return []
    return [
        f"the source has {size(total)}; by default an installation takes {size(_USUAL_BYTES)} as an archive "
        "and 1 GiB unpacked (limits context_bytes and unpacked_bytes)"
    ]


def _image_notes(planned: Planned) -> list[str]:
    """Return a note on the images of a Dockerfile, which the installation allows or not."""
    base = planned.declaration.base
    return [f"not checked: whether the installation allows {', '.join(base.images)}"] if base else []


def _outside_notes(planned: Planned, base: str, outside: Container[str]) -> list[str]:
    """Return a note where the plan needs files above the directory, which an upload does not contain."""
    declaration = planned.declaration
    above = [path for path in declaration.origin.split(", ") if path in outside]
    above += [path or "." for path in declaration.projects if not f"{path}/".startswith(f"{base}/")]
    if not base or not above:
        return []
    return [f"needs {', '.join(above)} of the repository: deploy from git with source.git.path {base}"]


def _row(planned: Planned, notes: Sequence[str]) -> dict[str, Any]:
    plan = planned.plan
    return {
        "framework": plan.framework,
        "entrypoint": plan.entrypoint,
        "entrypoints": dict(plan.entrypoints),
        "python": plan.python,
        "timeout": plan.timeout,
        "dependencies": planned.declaration.origin or None,
        "env_required": list(plan.env_required),
        "left_out": sorted(planned.excluded),
        "notes": list(notes),
    }
