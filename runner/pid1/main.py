"""The main function of process 1, from the start of the pod to its exit code. Called by `__main__`.

Imports before the claim delay every run; other modules are imported while the crew starts.
"""

from __future__ import annotations

import os
import sys
import time

from runner.pid1 import settings
from runner.pid1.process import launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runner.pid1.api.http import KeepAliveConnection

EXIT_RUNNER_FAILED = 70
EXIT_NOT_TAKEN = 79
_CLOCK_SLACK_SECONDS = 0.01  # the kernel's clock for files is behind by one tick


def main() -> int:
    """Run the crew at most once. Exit: 0 reported, 77 denied or lost, 78 API unavailable, 70 runner error.

    79: the pod was started before its run, and got none.
    """
    log = os.environ.get("CREWYARD_TERMINATION_LOG", "/dev/termination-log")
    try:
        return _run(settings.pop_settings(os.environ))
    except Exception as error:  # report any error and exit instead of hanging
        import traceback

        traceback.print_exc()
        _write_termination(log, f"The runner failed: {type(error).__name__}: {error}")
        return EXIT_RUNNER_FAILED


def _run(pod_settings: settings.RunnerSettings) -> int:
    os.chdir(pod_settings.app)
    # Start the child first, so its start and the claim overlap. It executes no crew code until the task is on
    # its descriptor 4, so protecting process 1 after the start is early enough.
    run_id = {"CREWYARD_RUN_ID": pod_settings.run_id} if pod_settings.run else {}
    child = launch.start({**os.environ, **run_id})

    from runner.pid1.process import guard, memory, signals

    signals.block()
    from runner.pid1.api.client import RunAPIClient, now
    from runner.pid1.claim import ClaimGrant, ClaimRejected, claim

    guard.protect()
    # Before the grant: OOM kills from here on are those of the crew.
    cgroup = memory.CgroupMemory(pod_settings.cgroup)
    started = time.time() - _CLOCK_SLACK_SECONDS
    connection = None
    if pod_settings.warm:
        waited = _wait_for_run(pod_settings, child)
        if isinstance(waited, int):
            return waited
        connection = waited
    nonce = os.urandom(16).hex()
    client = RunAPIClient(pod_settings, nonce, connection)
    outcome = claim(client, now() + pod_settings.start_timeout, signals.stop_requested_within)
    if isinstance(outcome, ClaimGrant):
        stopped = signals.stop_requested_within(0)
        if stopped:
            os.close(child.grant)
        else:
            task = {"entrypoint": outcome.entrypoint, "framework": outcome.framework, "input": outcome.input}
            task |= {"config": outcome.config, "context": outcome.context}
            task |= {"ask": outcome.ask_seconds > 0}
            task |= {"run_id": pod_settings.run_id, "limits": outcome.limits}
            task |= {"traceparent": outcome.traceparent}
            grant = launch.grant_in_thread if pod_settings.warm else launch.grant
            grant(child, task, keep_open=outcome.ask_seconds > 0)

        from runner.pid1.supervise import CrewSupervisor

        return CrewSupervisor(pod_settings, nonce, client, child, outcome, cgroup, started).run(stopped)
    client.close()
    os.kill(child.pid, 9)
    if isinstance(outcome, ClaimRejected):
        print(f"runner: the claim was denied: {outcome.reason}", file=sys.stderr)
        _write_termination(pod_settings.termination_log, f"The claim was denied: {outcome.reason}")
        return 77
    print(f"runner: not claimed: {outcome.message}", file=sys.stderr)
    _write_termination(
        pod_settings.termination_log,
        f"The run was not claimed: {outcome.message}",
        "stopped" if outcome.stopped else None,
    )
    return 78


def _wait_for_run(
    pod_settings: settings.RunnerSettings, child: launch.CrewProcess
) -> KeepAliveConnection | int:
    """Let the crew's process import its entrypoint until the pod has a run.

    Return the open connection, or the exit code if the pod gets no run.
    """
    from runner.pid1 import supervise, termination, warm  # noqa: F401  before the run, which needs supervise

    entrypoint = {"entrypoint": pod_settings.entrypoint, "framework": pod_settings.framework}
    launch.send(child, {"prepare": entrypoint})
    outcome = warm.wait(pod_settings, child)
    if isinstance(outcome, warm.AssignedRun):
        pod_settings.bind(outcome.run, outcome.run_uid, outcome.token)
        return outcome.connection
    os.kill(child.pid, 9)
    print(f"runner: no run: {outcome.message}", file=sys.stderr)
    message = termination.compose(
        "stopped" if outcome.stopped else None, outcome.reason, outcome.message, reported=False
    )
    termination.write(pod_settings.termination_log, message)
    return EXIT_NOT_TAKEN


def _write_termination(path: str, message: str, outcome: str | None = None) -> None:
    from runner.pid1 import termination

    termination.write(path, termination.compose(outcome, None, message, reported=False))
