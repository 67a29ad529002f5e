"""Framework of a crew: configured, else inferred from its dependencies."""

from collections.abc import Collection

from ..errors import UNSUPPORTED_FRAMEWORK, PlanError, closest_match, join_limited
from ..source import Files

FRAMEWORKS = ("crewai", "langgraph", "python")
ONLY_PYTHON_HINT = f"Only Python crews can be built; frameworks are {join_limited(FRAMEWORKS)}."

_JAVASCRIPT_FRAMEWORK_SUFFIXES = ("-js", "-ts", ".js", "js")
_OTHER_LANGUAGES = {
    "package.json": "JavaScript",
    "deno.json": "JavaScript",
    "go.mod": "Go",
    "Cargo.toml": "Rust",
    "pom.xml": "Java",
    "build.gradle": "Java",
    "build.gradle.kts": "Kotlin",
    "Gemfile": "Ruby",
    "composer.json": "PHP",
    "mix.exs": "Elixir",
}


def check_framework(declared: str | None, location: str) -> None:
    """Raise PlanError(UnsupportedFramework) where `declared`, at `location`, is none of FRAMEWORKS."""
    if declared is None or declared in FRAMEWORKS:
        return
    name = declared.lower()
    suggestion = closest_match(name, FRAMEWORKS)
    if name.endswith(_JAVASCRIPT_FRAMEWORK_SUFFIXES):
        hint = ONLY_PYTHON_HINT
    else:
        hint = f"Did you mean {suggestion!r}?" if suggestion else 'Use "python" for any other framework.'
    raise PlanError(
        UNSUPPORTED_FRAMEWORK,
        f"{location} is {declared!r}; supported are {join_limited(FRAMEWORKS)}",
        hint,
    )


def check_language(files: Files) -> None:
    """Raise PlanError(UnsupportedFramework) for a tree of another language without any Python."""
    marker = next((name for name in _OTHER_LANGUAGES if name in files), None)
    if marker is None or "pyproject.toml" in files:
        return
    if not any(path.endswith(".py") for path in files):
        raise PlanError(
            UNSUPPORTED_FRAMEWORK,
            f"found {marker} but no Python file: this looks like {_OTHER_LANGUAGES[marker]}",
            f"{ONLY_PYTHON_HINT} Check spec.source.git.path of the Project, or the directory that you "
            "deploy.",
        )


def framework_of(declared: str | None, packages: Collection[str]) -> str:
    """Return the declared framework, else the first of FRAMEWORKS among the required packages."""
    if declared is not None:
        return declared
    for name in ("crewai", "langgraph"):
        if name in packages:
            return name
    return "python"
