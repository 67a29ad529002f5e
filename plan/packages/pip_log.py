"""Classification of a failed dependency installation from the end of the log of uv or pip. Pure.

Called by the controller after Kaniko failed, and by the build pod that downloads wheels.
"""

import re

from ..base.render import WRONG_PYTHON
from ..errors import BUILD_FAILED, CONFIG_INVALID, DEPENDENCY_RESOLUTION, PlanError
from .dockerfile import FROM_PYLOCK, TREE

INDEX_UNREACHABLE = "the package index could not be reached"
"""The message of the only transient failure."""

_REPETITIONS = ("error building image:", "hint:")
_SETUP_FAILED = "the setup of a package failed: {what}"
_OWN_SETUP_FAILED = "the setup of the crew's own project failed: {what}"
_OWN_SETUP_HINT = "Try pip install . in an empty environment; the build log has its output."
_PIN = "Correct the version, which must exist for the crew's Python; if a lock pins it, lock again."
_LOOSEN = "Relax one of the version constraints until pip install works in an empty environment."
_COMPILER = "The base image has no compiler: choose a version that has a wheel for the crew's Python."

# Causes before their consequences: pip continues after many errors and then finds no version.
_PATTERNS = tuple(
    (re.compile(pattern), reason, message, hint)
    for pattern, reason, message, hint in (
        (
            rf"{WRONG_PYTHON} none, not (?P<what>\S+)",
            CONFIG_INVALID,
            "the image of the Dockerfile has no Python, and the crew needs {what}",
            "Use an image whose PATH has python3, or install it in the Dockerfile.",
        ),
        (
            rf"{WRONG_PYTHON} (?P<what>[^,\s]+), not (?P<more>\S+)",
            CONFIG_INVALID,
            "the image of the Dockerfile has Python {what}, and the crew needs {more}",
            'Write python = "3.x" in the configuration with the version of the image, or change the image.',
        ),
        (
            r"exec /bin/sh: no such file or directory",
            CONFIG_INVALID,
            "the image of the Dockerfile has no shell",
            "Use an image with /bin/sh, such as a slim one instead of a distroless one.",
        ),
        (
            r"GET https?://(?P<what>\S+)/manifests/(?P<more>\S+): "
            r"(?:MANIFEST_UNKNOWN|NAME_UNKNOWN|UNAUTHORIZED|DENIED)\b",
            CONFIG_INVALID,
            "the image {what}:{more} does not exist, or needs a credential, which a build has not",
            "Correct FROM in the Dockerfile; without one, an operator corrects CREWYARD_BASE_IMAGES.",
        ),
        (
            r"\[Errno 28\]|No space left on device",
            BUILD_FAILED,
            "the installation ran out of disk space",
            "Use fewer packages, or raise spec.build.resources.limits.ephemeral-storage of the Project.",
        ),
        (
            r"MemoryError|Cannot allocate memory|signal: killed|exit status 137",
            BUILD_FAILED,
            "the installation ran out of memory",
            "Use fewer packages, or raise spec.build.resources.limits.memory of the Project.",
        ),
        (
            r"nothing may be executed while packages are downloaded",
            DEPENDENCY_RESOLUTION,
            "a package cannot be installed without executing it",
            "The last package in the log is a source archive or a repository; use a wheel instead.",
        ),
        (
            r"\b40[13] (?:Client )?Error|HTTP error 40[13]\b|Credentials not correct"
            r"|\(40[13] (?:Unauthorized|Forbidden)\)",
            DEPENDENCY_RESOLUTION,
            "the package index rejects the credentials",
            "Check the Secret named by the project's build.secretRef.",
        ),
        (
            r"E: Unable to locate package (?P<what>\S+)"
            r"|E: Package '(?P<more>[^'\r\n]{1,200})' has no installation candidate",
            DEPENDENCY_RESOLUTION,
            "the Debian package {what}{more} does not exist",
            "Correct the name: it must exist in the base image's release of Debian.",
        ),
        (
            r"the base image has no apt-get",
            DEPENDENCY_RESOLUTION,
            "the base image is not of Debian, so it can install no packages",
            "Remove packages from [build], or ask the operator for a base image of Debian.",
        ),
        (
            r"E: (?:Failed to fetch|Could not connect|Unable to connect|Some index files failed)",
            BUILD_FAILED,
            INDEX_UNREACHABLE,
            "Try again later; see the build log for the address.",
        ),
        (
            r"THESE PACKAGES DO NOT MATCH THE HASHES|Hash mismatch for `",
            DEPENDENCY_RESOLUTION,
            "a downloaded package does not match its pinned hash",
            "Update the hashes in the dependency declaration.",
        ),
        (
            r"(?:Hashes are required in|In) `?--require-hashes`? mode",
            DEPENDENCY_RESOLUTION,
            "some lines have a pinned hash and others have none",
            "Give every line a version by == and a hash (pip-compile --generate-hashes), or none of them.",
        ),
        (
            r"Cannot install (?P<what>[^\r\n]{1,2000}?) because these package versions have conflicting",
            DEPENDENCY_RESOLUTION,
            "{what} conflict with each other",
            _LOOSEN,
        ),
        (
            r"ResolutionImpossible",
            DEPENDENCY_RESOLUTION,
            "the version constraints conflict with each other",
            _LOOSEN,
        ),
        (
            r"Failed to establish a new connection|NameResolutionError|ReadTimeoutError|ConnectTimeoutError"
            r"|Connection aborted|Could not fetch URL|HTTP error 5\d\d|\b5\d\d Server Error|SSLError"
            r"|IncompleteRead|ProtocolError"
            r"|error sending request for url|HTTP status server error|error decoding response body",
            BUILD_FAILED,
            INDEX_UNREACHABLE,
            "Try again later; see the build log for the address.",
        ),
        (
            r"does not satisfy Python\S* and (?P<what>\S+) depends on Python"
            r"|Because (?P<more>\S+) has no wheels with a matching",
            DEPENDENCY_RESOLUTION,
            "no version of {what}{more} supports the crew's Python",
            "Choose another version of it, or another python in the configuration file.",
        ),
        (
            r"Because (?:there is no version of (?P<what>\S+) and|(?P<more>\S+) was not found in the package)"
            r"[\s\S]{1,300}requirements\s+are\s+unsatisfiable",
            DEPENDENCY_RESOLUTION,
            "no version of {what}{more} can be installed",
            _PIN,
        ),
        (
            r"No solution found when resolving dependencies[^\n]*\n\s*(?:cause:|╰─▶) (?P<what>[\s\S]{1,2000}?"
            r"(?:unsatisfiable|incompatible|cannot\s+be\s+used))\.",
            DEPENDENCY_RESOLUTION,
            "the version constraints conflict with each other: {what}",
            _LOOSEN,
        ),
        (
            r"Couldn't parse requirement in [^\n]+\n\s*(?:cause:|╰─▶)[^\n]*\n\s*(?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} is not a valid requirement",
            "Correct that line of the dependency declaration.",
        ),
        (
            r"Ignored the following versions that require a different python version:"
            r"[\s\S]*No matching distribution found for (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "no version of {what} supports the crew's Python",
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
            "{what} is not a valid requirement",
            "Correct that line of the dependency declaration.",
        ),
        (
            r"Package '?(?P<what>[^'\r\n]{1,200}?)'? requires a different Python: (?P<more>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} requires another Python: {more}",
            "Choose another version of it, or another python in the configuration file.",
        ),
        (
            r"Cannot find command 'git'|Git executable not found",
            DEPENDENCY_RESOLUTION,
            "a requirement is in a git repository, but the base image has no git",
            'Add packages = ["git"] to [build], or use the URL of an archive (https://…/archive/<tag>.tar.gz).',
        ),
        (
            r"Multiple top-level (?:packages|modules) discovered in a flat-layout: (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "the project does not declare its packages: {what}",
            "List them in pyproject.toml ([tool.setuptools] packages), or move them below src/.",
        ),
        (
            r"command '?\"?(?P<what>[^'\"\s]*(?:gcc|g\+\+|cc|clang))'?\"? failed: No such file"
            r"|unable to execute '(?P<more>[^']+)': No such file",
            DEPENDENCY_RESOLUTION,
            "{package} must be compiled, but {what}{more} is missing",
            _COMPILER,
        ),
        (
            r"No such file or directory: '(?P<what>[^'\s]*(?:gcc|g\+\+|cc|clang))'",
            DEPENDENCY_RESOLUTION,
            "{package} must be compiled, but {what} is missing",
            _COMPILER,
        ),
        (
            r"Unsupported compiler -- at least (?P<what>C\+\+)\d+ support is needed",
            DEPENDENCY_RESOLUTION,
            "{package} must be compiled, but a compiler of {what} is missing",
            _COMPILER,
        ),
        (
            r"(?P<what>Python\.h): No such file|can't find (?P<more>Rust) compiler",
            DEPENDENCY_RESOLUTION,
            "{package} must be compiled, but {what}{more} is missing",
            _COMPILER,
        ),
        (
            rf"(?:error: The build backend returned an error|Failed to build `[^`\n]*{TREE}[^`\n]*`)\n"
            r"(?:[^\n]*\n)*?(?P<what>[^\n]+)\n*(?:hint:|error building image|\Z)",
            BUILD_FAILED,
            _OWN_SETUP_FAILED,
            _OWN_SETUP_HINT,
        ),
        (
            r"(?:Failed building wheel for|Failed to build) (?P<what>[^\r\n]+)",
            DEPENDENCY_RESOLUTION,
            "{what} has no wheel for this platform and could not be compiled",
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


_FAILED_PACKAGE = re.compile(
    rf"Failed to build `(?![^`\n]*{TREE})([^`\n]{{1,200}})`|Failed building wheel for (\S{{1,200}})"
)
_SECOND_ATTEMPT = re.compile(rf"^{re.escape(FROM_PYLOCK)}\r?$", re.MULTILINE)


def dependency_failure(log: str) -> PlanError:
    """Return (not raise) the error of a failed installation: DependencyResolution or BuildFailed.

    If the lock's URLs failed too, the failure of the index is the error, unless the log lacks it.
    """
    first, *second = _SECOND_ATTEMPT.split(log)
    log = first if first.strip() else "".join(second)
    # The rest of the first attempt, on another stream, may follow the note of the second.
    for text in (log, *second):
        for pattern, reason, message, hint in _PATTERNS:
            match = pattern.search(text)
            if match:
                groups = {
                    name: " ".join((what or "").split())[:300] for name, what in match.groupdict().items()
                }
                if message == _SETUP_FAILED and _is_own_project(text[: match.start()]):
                    return PlanError(BUILD_FAILED, _OWN_SETUP_FAILED.format(**groups), _OWN_SETUP_HINT)
                return PlanError(reason, message.format(**groups, package=_failed_package(text)), hint)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    # The builder repeats that its command failed.
    lines = [line for line in lines if not line.startswith(_REPETITIONS)] or lines
    last_line = lines[-1][:300] if lines else "the builder printed nothing"
    return PlanError(BUILD_FAILED, f"building the dependency image failed: {last_line}", "See the build log.")


def _failed_package(log: str) -> str:
    """Return the package that could not be built, as uv or pip names it."""
    failed = _FAILED_PACKAGE.search(log)
    return (failed[1] or failed[2]) if failed else "a package"


def _is_own_project(before: str) -> bool:
    """Return whether pip was processing the crew's own project, and nothing else, at the end of `before`."""
    _, marker, after = before.rpartition(f"Processing {TREE}")
    return bool(marker) and "Collecting " not in after
