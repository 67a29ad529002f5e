"""The table `[artifacts]`: files to keep besides those in the artifacts directory. Called by configuration.

Unlike the other tables it may stand alone in crew.toml or [tool.crewyard], beside a configuration file of
another tool.
"""

from ..source import Files
from .toml_tables import TomlTable, read_toml

TABLE = "artifacts"
_MAX_PATTERNS = 20
# The whole plan must fit into a build pod's termination message.
_MAX_CHARACTERS = 512


def has_only_artifacts(root: TomlTable) -> bool:
    """Return whether the file or table configures nothing but artifacts."""
    return set(root.values) == {TABLE}


def read_include(files: Files) -> tuple[str, ...]:
    """Return the patterns of `[artifacts] include`. Raises PlanError(ConfigInvalid)."""
    for root in _roots(files):
        table = root.table(TABLE)
        if table is not None:
            table.allow_only("include")
            return _checked(table)
    return ()


def _roots(files: Files) -> list[TomlTable]:
    if "crew.toml" in files:
        return [read_toml(files, "crew.toml")]
    tool = read_toml(files, "pyproject.toml").table("tool") if "pyproject.toml" in files else None
    own = tool.table("crewyard") if tool else None
    return [own] if own else []


def _checked(table: TomlTable) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(table.texts_at("include", "output/**")))
    for pattern in patterns:
        if pattern.startswith("!") or "\\" in pattern or ".." in pattern.split("/"):
            raise table.error(
                "include", f"has {pattern[:200]!r}", 'Use names below the repository, as in "output/**".'
            )
    if len(patterns) > _MAX_PATTERNS or sum(map(len, patterns)) > _MAX_CHARACTERS:
        raise table.error(
            "include",
            f"has {len(patterns)} patterns of {sum(map(len, patterns))} characters",
            f"Use at most {_MAX_PATTERNS} with {_MAX_CHARACTERS} characters in total, such as a directory.",
        )
    return patterns
