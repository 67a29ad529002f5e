"""The runner as process 1 of its own PID namespace, as in a pod."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.conftest import wait_until

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def _possible() -> bool:
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


pytestmark = pytest.mark.skipif(not _possible(), reason="needs permission to create a PID namespace")


async def test_orphans_are_reaped(pod: Any, api: Any) -> None:
    pod.before = NAMESPACE
    pod.crew(
        """
        import os, subprocess, time
        def kickoff():
            for _ in range(10):
                subprocess.Popen(["sleep", "640"], start_new_session=True)
                os.system("(true &)")
            def zombies():
                found = 0
                for one in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        text = open(f"/proc/{one}/stat").read()
                    except (FileNotFoundError, ProcessLookupError):
                        continue
                    found += text.rpartition(")")[2].split()[0] == "Z"
                return found
            end = time.monotonic() + 90
            while (left := zombies()) and time.monotonic() < end:
                time.sleep(0.05)
            return [os.getppid(), left]
        """
    )
    ended = await pod.run()
    assert (ended.code, api.result["output"]) == (0, [1, 0])
    assert ended.seconds < 200  # the children sleep for 640 s


async def test_process_1_handles_sigterm(pod: Any, api: Any) -> None:
    pod.before = NAMESPACE
    pod.crew("import time\ndef kickoff():\n    print('ready')\n    time.sleep(60)")
    await pod.start()
    await wait_until(lambda: api.logs() == ["ready"])
    outside = pod.process.pid
    [runner] = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
    os.kill(int(runner), signal.SIGTERM)
    ended = await pod.wait()
    assert (ended.code, api.result["outcome"]) == (0, "stopped")


async def test_a_crew_that_signals_process_1_does_not_stop_the_run(pod: Any, api: Any) -> None:
    pod.before = NAMESPACE
    pod.crew(
        """
        import os, time
        def kickoff():
            for number in (15, 2, 9, 19, 17, 10, 1, 15):
                os.kill(1, number)
            time.sleep(0.5)
            return "alive"
        """
    )
    ended = await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "alive")
    assert ended.stderr.count("ignored a stop signal") == 1


async def test_an_early_stop_signal_stays_pending(pod: Any, api: Any) -> None:
    pod.before = NAMESPACE
    api.claim_states = [{"state": "wait", "retry_after_seconds": 300}] * 100
    pod.crew("def kickoff(): pass")
    await pod.start()
    await pod.process.stderr.readline()
    outside = pod.process.pid
    [runner] = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
    os.kill(int(runner), signal.SIGTERM)
    ended = await pod.wait()
    assert (ended.code, ended.termination["outcome"]) == (78, "stopped")
    assert ended.seconds < 120
