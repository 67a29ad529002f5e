"""Why installing the dependencies failed, told from the end of the log. Called when Kaniko failed."""

import re

from plan.errors import BUILD_FAILED, DEPENDENCY_RESOLUTION, PlanError

_PIN = "Correct the pin in the dependency declaration; a version must exist for the crew's Python."
_KINDS = (
    (
        re.compile(r"No matching distribution found for (?P<what>[^\r\n]+)"),
        "no version of {what} can be installed",
        _PIN,
    ),
    (
        re.compile(r"Cannot install (?P<what>[^\r\n]+?) because these package versions have conflicting"),
        "{what} contradict each other",
        "Loosen one of the pins until pip install works in an empty environment.",
    ),
    (re.compile(r"ResolutionImpossible"), "the pins contradict each other", "Loosen one of the pins."),
    (
        re.compile(r"(?:Invalid requirement:|ERROR: Invalid requirement) (?P<what>[^\r\n]+)"),
        "{what} is no requirement",
        "Correct that line of the dependency declaration.",
    ),
    (
        re.compile(r"Package '?(?P<what>[^'\r\n]+?)'? requires a different Python: (?P<more>[^\r\n]+)"),
        "{what} needs another Python: {more}",
        "Choose another version of it, or another python in the configuration file.",
    ),
    (
        re.compile(r"(?:Failed building wheel for|Failed to build) (?P<what>[^\r\n]+)"),
        "{what} has no ready-made wheel here and could not be compiled",
        "Choose a version with a wheel for the crew's Python.",
    ),
    (
        re.compile(r"THESE PACKAGES DO NOT MATCH THE HASHES"),
        "a downloaded package does not match its pinned hash",
        "Renew the hashes of the dependency declaration.",
    ),
)


def dependency_failure(log: str) -> PlanError:
    """The error behind a failed dependency build (not raised): DependencyResolution or BuildFailed."""
    for pattern, message, hint in _KINDS:
        found = pattern.search(log)
        if found:
            words = {name: text.strip()[:300] for name, text in found.groupdict().items()}
            return PlanError(DEPENDENCY_RESOLUTION, message.format(**words), hint)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else "the builder said nothing"
    return PlanError(BUILD_FAILED, f"building the dependency image failed: {last}", "See the build log.")
