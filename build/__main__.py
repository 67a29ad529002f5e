"""`python3 -m build assemble | source | push | prune | wait`: one step of a build pod.

`wait` waits for a build and continues as `assemble`.

Exit codes: 0: the step has a result; for `assemble` this may be a failure for the author of the crew.
1: `source` or `push` failed permanently. 75 (EX_TEMPFAIL): infrastructure error; retry the pod.
64 (EX_USAGE): wrong arguments or environment.
"""

import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from build.api_client import InternalApiClient
from build.errors import InfrastructureError
from build.json_object import BuildSettingsInvalid
from build.logs import BuildLog, api_sender
from build.registry.prune_settings import PruneSettings, read_prune_settings
from build.report import report_result
from build.settings import BuildSettings, ProvenImages, read_settings
from build.termination import PATH, write_termination
from plan.errors import PlanError

STEPS = ("assemble", "source", "push", "prune")
SUCCEEDED, FAILED, USAGE, TEMPORARY_FAILURE = 0, 1, 64, 75
_LOG_FIRST_SECONDS = 1.0
"""For the log before the result: mostly it is complete then when the deployment becomes Built."""
_LOG_TIMEOUT_SECONDS = 5.0
_REPORTED_LOG_TIMEOUT_SECONDS = 30.0
"""For the rest of the log once the controller has the result, which then does not wait for the exit."""
DEFAULT_TIMEOUT_SECONDS = 1800
"""The timeout of a pod where CREWYARD_BUILD has none."""


def run(step: str, settings: BuildSettings | PruneSettings, log: BuildLog) -> tuple[dict[str, Any], int]:
    """Run one step; return the termination message (empty for a plain success) and the exit code."""
    try:
        if isinstance(settings, PruneSettings):
            from build.registry.prune import prune

            return prune(settings, log), SUCCEEDED
        if step == "assemble":
            from build.assemble import assemble
            from build.image.runner_files import RUNNER

            return assemble(settings, log, RUNNER), SUCCEEDED
        if step == "source":
            from build.workspace import write_workspace

            write_workspace(settings, log)
        else:
            from build.registry.push import push_dependencies

            digest = push_dependencies(settings, log)
            pushed = {"outcome": "pushed", "key": settings.dependencies_key, "digest": digest}
            return _assemble_on(settings, digest, log) or pushed, SUCCEEDED
    except PlanError as error:
        last_lines = log.last()
        log.line(f"failed: {error.reason}: {error.message}")
        if error.hint:
            log.line(error.hint)
        result = {"outcome": "failed", "reason": error.reason, "message": error.message, "hint": error.hint}
        # The lines before the failure; where there are none, the message itself.
        result["log"] = last_lines or log.last()
        return result, SUCCEEDED if step == "assemble" else FAILED
    except InfrastructureError as error:
        log.line(f"infrastructure error: {error}")
        reason = {"reason": error.reason} if error.reason else {}
        return {"outcome": "trouble", **reason, "message": str(error), "log": log.last()}, TEMPORARY_FAILURE
    except Exception:
        for text in traceback.format_exc().splitlines():
            log.line(text)
        message = "internal error of the build; see the build log"
        return {"outcome": "trouble", "message": message, "log": log.last()}, TEMPORARY_FAILURE
    return {}, SUCCEEDED


def _assemble_on(settings: BuildSettings, digest: str, log: BuildLog) -> dict[str, Any]:
    """Assemble the image on the pushed dependency image; {} leaves it, with any error, to another pod."""
    proven = ProvenImages(dependencies={str(settings.dependencies_key): digest})
    result, code = run("assemble", replace(settings, proven=proven), log)
    return result if code == SUCCEEDED and result["outcome"] == "built" else {}


def main(arguments: list[str]) -> int:
    """Run one step as the pod's command and return the exit code."""
    if len(arguments) != 1 or arguments[0] not in STEPS:
        print(f"usage: python3 -m build {' | '.join(STEPS)}", file=sys.stderr)
        return USAGE
    try:
        settings = (read_prune_settings if arguments[0] == "prune" else read_settings)(os.environ)
    except (BuildSettingsInvalid, ValueError, TypeError) as error:
        print(f"invalid environment of the build pod: {error}", file=sys.stderr)
        return USAGE
    log = BuildLog() if isinstance(settings, PruneSettings) else _api_log(settings, arguments[0])
    result, code = run(arguments[0], settings, log)
    if result:
        path = Path(os.environ.get("CREWYARD_TERMINATION", str(PATH)))
        try:
            write_termination(result, path)
        except OSError as error:
            log.line(f"cannot write the termination message: {error}")
            code = TEMPORARY_FAILURE
    is_reported = False
    if code == SUCCEEDED and isinstance(settings, BuildSettings) and arguments[0] != "source":
        log.close(_LOG_FIRST_SECONDS)
        is_reported = report_result(settings, arguments[0], result or {"outcome": "pushed"})
    log.close(_REPORTED_LOG_TIMEOUT_SECONDS if is_reported else _LOG_TIMEOUT_SECONDS)
    return code


def _api_log(settings: BuildSettings, step: str) -> BuildLog:
    api = InternalApiClient(settings.internal_url, settings.token, 10.0, settings.internal_ca)
    return BuildLog(api_sender(api, settings.deployment, settings.pod, step))


def hang_timeout(environ: Mapping[str, str]) -> float:
    """Return the seconds after which `assemble` counts as hanging: two thirds of the pod's timeout.

    All its waits are bounded. It then dumps its stacks and is retried, before the pod's own timeout, which
    would leave no trace.
    """
    try:
        seconds = float(json.loads(environ["CREWYARD_BUILD"])["seconds"])
    except (KeyError, TypeError, ValueError):
        # Reading the settings reports the error.
        seconds = DEFAULT_TIMEOUT_SECONDS
    return seconds * 2 / 3


def _assemble_later() -> list[str]:
    """Wait for a build and take over its variables; return the arguments of its step."""
    from build.wait import NoBuild, wait_for_build

    try:
        os.environ.update(wait_for_build(os.environ))
    except (NoBuild, BuildSettingsInvalid) as error:
        print(f"no build: {error}", file=sys.stderr, flush=True)
        os._exit(FAILED)
    return ["assemble"]


def run_and_exit(arguments: list[str]) -> NoReturn:
    """Run one step and exit the process without waiting for its threads."""
    if arguments == ["wait"]:
        arguments = _assemble_later()
    if arguments == ["assemble"]:
        faulthandler.dump_traceback_later(hang_timeout(os.environ), exit=True)
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not a normal exit: the interpreter's shutdown can wait for locks of threads that it has stopped.
    os._exit(code)


if __name__ == "__main__":
    run_and_exit(sys.argv[1:])
