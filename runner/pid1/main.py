"""From the pod's start to its exit code. Called by `__main__`.

What is imported before the claim is paid for by every run; the rest is imported while the crew starts.
"""

from __future__ import annotations

import os
import sys

from runner.pid1 import settings
from runner.pid1.process import launch

OWN_FAILURE = 70


def main() -> int:
    """Runs the crew once at most: 0 reported, 77 refused or lost, 78 facade away, 70 our own failure."""
    log = os.environ.get("CREWYARD_TERMINATION_LOG", "/dev/termination-log")
    try:
        return _run(settings.take(os.environ))
    except Exception as error:  # whatever it is, the pod says so and does not hang
        import traceback

        traceback.print_exc()
        _last_word(log, f"The runner itself failed: {type(error).__name__}: {error}")
        return OWN_FAILURE


def _run(given: settings.Settings) -> int:
    os.chdir(given.app)
    # The child starts before everything else, so that its start and the claim overlap. It executes nothing of
    # the crew's until the grant is on its descriptor 4: the guard is closed in time although it comes second.
    child = launch.start({**os.environ, "CREWYARD_RUN_ID": given.run_id})

    from runner.pid1.process import guard, memory, signals

    signals.hold()
    from runner.pid1.api.client import Facade, now
    from runner.pid1.claim import Granted, Refused, claim

    guard.seal()
    watched = memory.Memory(
        given.cgroup
    )  # before the grant: what the kernel kills from here on is the crew's
    nonce = os.urandom(16).hex()
    facade = Facade(given, nonce)
    said = claim(facade, now() + given.start_timeout, signals.stop_within)
    facade.close()
    if isinstance(said, Granted):
        stopped = signals.stop_within(0)
        if stopped:
            os.close(child.grant)
        else:
            task = {"entrypoint": said.entrypoint, "framework": said.framework, "input": said.input}
            launch.grant(child, {**task, "limits": said.limits})

        from runner.pid1.work import Work

        return Work(given, nonce, child, said, watched).run(stopped)
    os.kill(child.pid, 9)
    if isinstance(said, Refused):
        print(f"runner: the claim was refused: {said.reason}", file=sys.stderr)
        _last_word(given.termination_log, f"The claim was refused: {said.reason}")
        return 77
    print(f"runner: not claimed: {said.message}", file=sys.stderr)
    _last_word(
        given.termination_log, f"The run was not claimed: {said.message}", "stopped" if said.stopped else None
    )
    return 78


def _last_word(path: str, message: str, outcome: str | None = None) -> None:
    from runner.pid1 import termination

    termination.write(path, termination.compose(outcome, None, message, reported=False))
