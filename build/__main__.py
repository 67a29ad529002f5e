"""`python3 -m build assemble | source | push | prune`: one step of a build pod.

Exit 0: there is an answer, for `assemble` also a failure for the author. 1: `source`
or `push` failed for good. 75: trouble of the installation; the pod may be tried again.
64: the pod was made wrongly.
"""

import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from build.api_client import Facade
from build.errors import Infrastructure
from build.json_object import SettingsInvalid
from build.logs import Log, facade_sender
from build.registry.prune_settings import PruneSettings, read_prune_settings
from build.report import tell
from build.settings import Settings, read_settings
from build.termination import PATH, write_termination
from plan.errors import PlanError

STEPS = ("assemble", "source", "push", "prune")
ANSWERED, FAILED, USAGE, TROUBLE = 0, 1, 64, 75
_LOG_TIMEOUT = 5.0
SECONDS = 1800
"""What a pod may take where CREWYARD_BUILD does not say it."""


def run(step: str, settings: Settings | PruneSettings, log: Log) -> tuple[dict[str, Any], int]:
    """The words for the termination message (none for a plain success) and the exit code of one step."""
    try:
        if isinstance(settings, PruneSettings):
            from build.registry.prune import prune

            return prune(settings, log), ANSWERED
        if step == "assemble":
            from build.assemble import assemble
            from build.image.runner_files import RUNNER

            return assemble(settings, log, RUNNER), ANSWERED
        if step == "source":
            from build.workspace import write_workspace

            write_workspace(settings, log)
        else:
            from build.registry.push import push_dependencies

            push_dependencies(settings, log)
    except PlanError as error:
        last = log.last()
        log.line(f"failed: {error.reason}: {error.message}")
        if error.hint:
            log.line(error.hint)
        words = {"outcome": "failed", "reason": error.reason, "message": error.message, "hint": error.hint}
        # What the message does not say yet; where nothing else was said, the message.
        words["log"] = last or log.last()
        return words, ANSWERED if step == "assemble" else FAILED
    except Infrastructure as error:
        log.line(f"trouble of the installation: {error}")
        reason = {"reason": error.reason} if error.reason else {}
        return {"outcome": "trouble", **reason, "message": str(error), "log": log.last()}, TROUBLE
    except Exception:
        for text in traceback.format_exc().splitlines():
            log.line(text)
        message = "an error in the build itself, see the log"
        return {"outcome": "trouble", "message": message, "log": log.last()}, TROUBLE
    return {}, ANSWERED


def main(arguments: list[str]) -> int:
    """One step as the pod's command; the exit code."""
    if len(arguments) != 1 or arguments[0] not in STEPS:
        print(f"usage: python3 -m build {' | '.join(STEPS)}", file=sys.stderr)
        return USAGE
    try:
        settings = (read_prune_settings if arguments[0] == "prune" else read_settings)(os.environ)
    except (SettingsInvalid, ValueError, TypeError) as error:
        print(f"the build pod's environment is wrong: {error}", file=sys.stderr)
        return USAGE
    log = Log() if isinstance(settings, PruneSettings) else _sent_log(settings, arguments[0])
    words, code = run(arguments[0], settings, log)
    if words:
        place = Path(os.environ.get("CREWYARD_TERMINATION", str(PATH)))
        try:
            write_termination(words, place)
        except OSError as error:
            log.line(f"the termination message cannot be written: {error}")
            code = TROUBLE
    log.close(_LOG_TIMEOUT)
    if code == ANSWERED and isinstance(settings, Settings) and arguments[0] != "source":
        # After the log, which is then whole when the deployment is seen to be built.
        tell(settings, arguments[0], words or {"outcome": "pushed"})
    return code


def _sent_log(settings: Settings, step: str) -> Log:
    facade = Facade(settings.internal_url, settings.token, timeout=10.0)
    return Log(facade_sender(facade, settings.deployment, settings.pod, step))


def patience(environ: Mapping[str, str]) -> float:
    """Seconds after which `assemble`, whose waits are bounded, is taken to hang: two thirds of the pod's.

    It then says where, and is tried again, before the pod's own end, which says nothing.
    """
    try:
        seconds = float(json.loads(environ["CREWYARD_BUILD"])["seconds"])
    except (KeyError, TypeError, ValueError):
        # What is wrong with it, reading the settings says.
        seconds = SECONDS
    return seconds * 2 / 3


def process(arguments: list[str]) -> NoReturn:
    """One step and the end of this process, whatever its threads are doing."""
    if arguments == ["assemble"]:
        faulthandler.dump_traceback_later(patience(os.environ), exit=True)
    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by way of the interpreter's own end, which can wait for locks of threads that it has stopped.
    os._exit(code)


if __name__ == "__main__":
    process(sys.argv[1:])
