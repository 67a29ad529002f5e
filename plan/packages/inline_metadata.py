"""Inline metadata of a script (PEP 723): its dependencies in a comment. Called by plan.make."""

import tomllib
from collections.abc import Iterator, Sequence

from packaging.requirements import InvalidRequirement, Requirement

from ..config.toml_tables import TomlTable
from ..errors import CONFIG_INVALID, DEPENDENCY_RESOLUTION, PlanError, join_limited
from ..source import Files, text_of
from .project_table import uv_redirects
from .requirements import path_of

_BEGIN, _END = "# /// script", "# ///"


def read_inline_metadata(files: Files, path: str) -> TomlTable | None:
    """Return the block `script` of the Python file `path` as a table, or None.

    Its lines have the numbers that they have in the file. Raises PlanError(ConfigInvalid).
    """
    if _BEGIN.encode() not in files[path]:
        return None
    text = text_of(files, path).replace("\r\n", "\n").split("\n")
    blocks = list(_blocks(text))
    if not blocks:
        return None
    if len(blocks) > 1:
        raise PlanError(CONFIG_INVALID, f"{path} has several blocks /// script", "Keep one of them.")
    ((begin, end),) = blocks
    content = "\n" * begin + "\n".join(line[2:] for line in text[begin:end])
    try:
        values = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise PlanError(
            CONFIG_INVALID, f"{path}: the block /// script is not valid TOML: {error}", "Correct it there."
        ) from None
    return TomlTable(path, "", values, content)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each block's content, counted from 0, and the line after it."""
    index = 0
    while index < len(lines):
        index += 1
        if lines[index - 1] != _BEGIN:
            continue
        # The last end mark of the comment counts: the content may have such a line.
        begin, end = index, None
        while index < len(lines) and (lines[index] == "#" or lines[index].startswith("# ")):
            end = index if lines[index] == _END else end
            index += 1
        if end is not None:
            yield begin, end


def inline_requirements(block: TomlTable, is_locked: bool = False) -> tuple[str, ...] | None:
    """Return the lines of `dependencies`, None if the block has none.

    Raises PlanError: ConfigInvalid, DependencyResolution for a source that cannot be applied, unless a lock
    has it.
    """
    if "dependencies" not in block.values:
        return None
    lines = block.texts_at("dependencies", "langgraph>=1")
    if not is_locked and (redirected := uv_redirects(block)):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{block.file}: [tool.uv.sources] of a script is not read; it has {join_limited([*redirected])}",
            f"Lock it with uv lock --script {block.file}, and commit the lock.",
        )
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            raise block.error(
                "dependencies", f"has {line!r}, which is not a package", "List packages only."
            ) from None
        if not is_locked and path_of(requirement):
            raise PlanError(
                DEPENDENCY_RESOLUTION,
                f"{block.file}: the path of a script's dependency is not read; it has {line}",
                f"Lock it with uv lock --script {block.file}, and commit the lock.",
            )
    return tuple(" ".join(line.split()) for line in lines)
