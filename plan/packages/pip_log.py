"""Why installing the dependencies failed, told from the end of pip's log.

Called by the controller when Kaniko failed, and by the build pod that downloads wheels.
"""

import re

from ..errors import BUILD_FAILED, DEPENDENCY_RESOLUTION, PlanError
from .dockerfile import TREE

INDEX_UNREACHABLE = "the package index could not be reached"
"""The message of the one failure that may be gone the next time."""

_SETUP_FAILED = "the setup of a package failed: {what}"
_PIN = "Correct the pin in the dependency declaration; a version must exist for the crew's Python."
_LOOSEN = "Loosen one of the pins until pip install works in an empty environment."
_COMPILER = "The base image has no compiler: choose a version that has a wheel for the crew's Python."

# Causes before what follows from them: pip goes on after many an error and then finds no version.
_KINDS = tuple(
    (re.compile(pattern), reason, message, hint)
    for pattern, reason, message, hint in (
        (
            r"\[Errno 28\]|No space left on device",
            BUILD_FAILED,
            "the installation ran out of disk",
            "Need fewer packages, or raise spec.build.resources.limits.ephemeral-storage of the Project.",
        ),
        (
            r"MemoryError|Cannot allocate memory|signal: killed|exit status 137",
            BUILD_FAILED,
            "the installation ran out of memory",
            "Need fewer packages, or raise spec.build.resources.limits.memory of the Project.",
        ),
        (
            r"nothing may be executed while packages are downloaded",
            DEPENDENCY_RESOLUTION,
            "a package cannot be installed without executing it",
            "The last package of the log refers to a source archive or a repository.",
        ),
        (
            r"\b40[13] (?:Client )?Error|HTTP error 40[13]\b|Credentials not correct",
            DEPENDENCY_RESOLUTION,
            "the package index refuses the credentials",
            "Check the Secret named by the project's build.secretRef.",
        ),
        (
            r"THESE PACKAGES DO NOT MATCH THE HASHES",
            DEPENDENCY_RESOLUTION,
            "a downloaded package does not match its pinned hash",
            "Renew the hashes of the dependency declaration.",
        ),
        (
            r"(?:Hashes are required in|In) --require-hashes mode",
            DEPENDENCY_RESOLUTION,
            "some lines have a pinned hash and others have none",
            "Give every line a version by == and a hash (pip-compile --generate-hashes), or none of them.",
        ),
        (
            r"Cannot install (?P<what>[^\r\n]{1,2000}?) because these package versions have conflicting",
            DEPENDENCY_RESOLUTION,
            "{what} contradict each other",
            _LOOSEN,
        ),
        (r"ResolutionImpossible", DEPENDENCY_RESOLUTION, "the pins contradict each other", _LOOSEN),
        (
            r"Failed to establish a new connection|NameResolutionError|ReadTimeoutError|ConnectTimeoutError"
            r"|Connection aborted|Could not fetch URL|HTTP error 5\d\d|\b5\d\d Server Error|SSLError"
            r"|IncompleteRead|ProtocolError",
            BUILD_FAILED,
            INDEX_UNREACHABLE,
            "Try again later; see the build log for the address.",
        ),
        (
            r"Ignored the following versions that require a different python version:"
            r"[\s\S]*No matching distribution found for (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "no version of {what} is for the crew's Python",
            "Choose another version of it, or another python in the configuration file.",
        ),
        (
            r"No matching distribution found for (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "no version of {what} can be installed",
            _PIN,
        ),
        (
            r"(?:Invalid requirement:|ERROR: Invalid requirement) (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} is no requirement",
            "Correct that line of the dependency declaration.",
        ),
        (
            r"Package '?(?P<what>[^'\r\n]{1,200}?)'? requires a different Python: (?P<more>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} needs another Python: {more}",
            "Choose another version of it, or another python in the configuration file.",
        ),
        (
            r"Cannot find command 'git'",
            DEPENDENCY_RESOLUTION,
            "a requirement lies in a git repository, and the base image has no git",
            "Name a released version, or the address of an archive (https://…/archive/<tag>.tar.gz).",
        ),
        (
            r"Multiple top-level (?:packages|modules) discovered in a flat-layout: (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "the project does not say which packages are its own: {what}",
            "List them in pyproject.toml ([tool.setuptools] packages), or move them below src/.",
        ),
        (
            r"command '?\"?(?P<what>[^'\"\s]*(?:gcc|g\+\+|cc|clang))'?\"? failed: No such file"
            r"|unable to execute '(?P<more>[^']+)': No such file",
            DEPENDENCY_RESOLUTION,
            "a package has to be compiled and there is no {what}{more}",
            _COMPILER,
        ),
        (
            r"(?P<what>Python\.h): No such file|can't find (?P<more>Rust) compiler",
            DEPENDENCY_RESOLUTION,
            "a package has to be compiled and there is no {what}{more}",
            _COMPILER,
        ),
        (
            r"(?:Failed building wheel for|Failed to build) (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} has no ready-made wheel here and could not be compiled",
            "Choose a version with a wheel for the crew's Python.",
        ),
        (
            r"\n(?P<what>[^\r\n]+)\r?\n\s*\[end of output\][\s\S]*metadata-generation-failed",
            DEPENDENCY_RESOLUTION,
            _SETUP_FAILED,
            "Choose a version with a wheel for the crew's Python; the log names the package.",
        ),
        (
            r"does not appear to be a Python project|is not installable",
            DEPENDENCY_RESOLUTION,
            "the crew's own project cannot be installed",
            "It needs a pyproject.toml with [build-system] and [project].",
        ),
    )
)


def dependency_failure(log: str) -> PlanError:
    """The error behind a failed installation (not raised): DependencyResolution or BuildFailed."""
    for pattern, reason, message, hint in _KINDS:
        found = pattern.search(log)
        if found:
            words = {name: (text or "").strip()[:300] for name, text in found.groupdict().items()}
            if message == _SETUP_FAILED and _own(log[: found.start()]):
                return PlanError(
                    BUILD_FAILED,
                    f"the setup of the crew's own project failed: {words['what']}",
                    "Try pip install . in an empty environment; the log shows what it printed.",
                )
            return PlanError(reason, message.format(**words), hint)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else "the builder said nothing"
    return PlanError(BUILD_FAILED, f"building the dependency image failed: {last}", "See the build log.")


def _own(before: str) -> bool:
    """Whether pip was at the crew's own project, and had begun with nothing else, when `before` was said."""
    _, begun, since = before.rpartition(f"Processing {TREE}")
    return bool(begun) and "Collecting " not in since
