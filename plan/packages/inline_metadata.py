"""Inline metadata of a script (PEP 723): its dependencies in a comment. Called by plan.make."""

import re
import tomllib

from packaging.requirements import InvalidRequirement, Requirement

from ..config.toml_tables import TomlTable
from ..errors import CONFIG_INVALID, DEPENDENCY_RESOLUTION, PlanError, join_limited
from ..source import Files, text_of
from .project_table import uv_redirects

# The expression of the specification.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_SCRIPT = "script"


def read_inline_metadata(files: Files, path: str) -> TomlTable | None:
    """Return the block `script` of the Python file `path` as a table, or None.

    Its lines have the numbers that they have in the file. Raises PlanError(ConfigInvalid).
    """
    if b"# /// script" not in files[path]:
        return None
    text = text_of(files, path).replace("\r\n", "\n")
    blocks = [match for match in _BLOCK.finditer(text) if match["type"] == _SCRIPT]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise PlanError(CONFIG_INVALID, f"{path} has several blocks /// script", "Keep one of them.")
    lines = [line[2:] if line.startswith("# ") else line[1:] for line in blocks[0]["content"].splitlines()]
    content = "\n" * text[: blocks[0].start("content")].count("\n") + "\n".join(lines)
    try:
        values = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(
            CONFIG_INVALID, f"{path}: the block /// script is not valid TOML: {error}", "Correct it there."
        ) from None
    return TomlTable(path, "", values, content)


def inline_requirements(block: TomlTable) -> tuple[str, ...] | None:
    """Return the lines of `dependencies`, None if the block has none.

    Raises PlanError: ConfigInvalid, DependencyResolution for a source that cannot be applied.
    """
    if "dependencies" not in block.values:
        return None
    lines = block.texts_at("dependencies", "langgraph>=1")
    if redirected := uv_redirects(block):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{block.file}: [tool.uv.sources] of a script is not read; it has {join_limited([*redirected])}",
            'Write where it comes from into dependencies: "name @ git+https://…".',
        )
    for line in lines:
        try:
            Requirement(line)
        except InvalidRequirement:
            raise block.error(
                "dependencies", f"has {line!r}, which is not a package", "List packages only."
            ) from None
    return tuple(" ".join(line.split()) for line in lines)
