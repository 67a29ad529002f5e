"""The real runner in a pod that was started before its run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runner import api_server as fake
from tests.unit.runner.conftest import RunnerPod, wait_until

WARM = {
    "WARM": fake.WARM_POD,
    "TOKEN": fake.WARM_TOKEN,
    "RUN": "",
    "RUN_UID": "",
    "ENTRYPOINT": "main:kickoff",
    "FRAMEWORK": "python",
}
CREW = """
    import os, sys
    print("imported", "CREWYARD_RUN_ID" in os.environ, "CREWYARD_TOKEN" in os.environ, flush=True)
    open("imported", "w").close()
    def kickoff(inputs):
        print("called")
        return {"run": os.environ["CREWYARD_RUN_ID"], "topic": inputs["topic"]}
"""


async def test_imports_before_the_run_and_calls_after_the_grant(pod: RunnerPod, api: Any) -> None:
    pod.crew(CREW)
    api.input = {"topic": "tea"}
    await pod.start(**WARM)
    await wait_until((pod.app / "imported").exists)
    await wait_until(lambda: api.waits >= 2)
    assert (api.claims, api.events) == (0, [])
    api.bound.set()
    ended = await pod.wait()
    assert (ended.code, api.claims) == (0, 1)
    assert api.logs()[:2] == ["imported False False", "called"]
    assert api.result["output"] == {"run": "run_01abc", "topic": "tea"}


async def test_the_crew_gets_the_trace_of_its_run(pod: RunnerPod, api: Any) -> None:
    pod.crew("import os\ndef kickoff(inputs): return os.environ.get('TRACEPARENT')")
    api.settings = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    api.bound.set()
    assert (await pod.run(**WARM)).code == 0
    assert api.result["output"] == api.settings["traceparent"]


async def test_wait_claim_and_events_use_one_connection(pod: RunnerPod, api: Any) -> None:
    pod.crew(CREW)
    api.input = {"topic": "tea"}
    api.bound.set()
    assert (await pod.run(**WARM)).code == 0
    used = api.connections
    assert len(used["wait"]) == 1
    assert used["wait"] == used["claim"] == used["events"]


async def test_a_run_that_arrives_during_the_import_is_claimed_at_once(pod: RunnerPod, api: Any) -> None:
    pod.crew("""
        import os, time
        while not os.path.exists("go"): time.sleep(0.01)
        def kickoff(inputs): return len(inputs["text"])
    """)
    api.input = {"text": "x" * 300_000}  # more than a pipe holds
    api.bound.set()
    await pod.start(**WARM)
    await wait_until(lambda: api.granted_at)
    (pod.app / "go").touch()
    assert ((await pod.wait()).code, api.result["output"]) == (0, 300_000)


async def test_a_failed_import_ends_the_pod_without_a_run(pod: RunnerPod, api: Any) -> None:
    pod.crew("""
        from crewyard_runtime import emit
        print("before")
        emit("log", message="logged")
        print("after")
        import nothing_like_this
    """)
    ended = await pod.run(**WARM, SECRETS="")
    assert (ended.code, api.claims) == (79, 0)
    assert (ended.termination["outcome"], ended.termination["reason"]) == (None, "ImportError")
    assert "nothing_like_this" in ended.termination["message"]
    assert b"before\n" in ended.stdout and b"ModuleNotFoundError" in ended.stdout
    assert b"\nlogged\n" in ended.stdout and b"after\nTraceback (most" in ended.stdout
    assert b"crewyard:" not in ended.stdout


async def test_a_failed_import_masks_variables(pod: RunnerPod, api: Any) -> None:
    pod.crew("import os\nraise RuntimeError('with ' + os.environ['API_KEY'])\n")
    pod.environ["API_KEY"] = "sk-0123456789"
    ended = await pod.run(**WARM, SECRETS="API_KEY")
    assert "with ***" in ended.termination["message"]
    assert b"sk-0123456789" not in ended.stdout


async def test_a_long_reason_of_a_failed_import_ends_the_pod(pod: RunnerPod, api: Any) -> None:
    pod.crew("""
        import json, os
        os.write(3, json.dumps({"failure": {"reason": "x" * 5000, "message": "boom"}}).encode() + b"\\n")
        os._exit(1)
    """)
    ended = await pod.run(**WARM)
    assert (ended.code, ended.termination["reason"]) == (79, "CrewError")
    assert ended.termination["message"] == "boom"


async def test_an_import_failure_after_the_grant_is_the_runs(pod: RunnerPod, api: Any) -> None:
    pod.crew("""
        import os, time
        while not os.path.exists("go"): time.sleep(0.01)
        import nothing_like_this
    """)
    api.bound.set()
    await pod.start(**WARM)
    await wait_until(lambda: api.granted_at)
    (pod.app / "go").touch()
    await pod.wait()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "ImportError")


@pytest.mark.parametrize("status", [401, 404])
async def test_a_pod_that_the_api_does_not_know_ends(pod: RunnerPod, api: Any, status: int) -> None:
    pod.crew(CREW)
    api.wait_statuses = [status]
    ended = await pod.run(**WARM)
    assert (ended.code, api.claims, api.waits) == (79, 0, 1)
    assert str(status) in ended.termination["message"]


async def test_waits_on_while_the_api_fails(pod: RunnerPod, api: Any) -> None:
    pod.crew(CREW)
    api.input = {"topic": "tea"}
    api.wait_statuses = [503, 500, 429]
    api.bound.set()
    assert (await pod.run(**WARM)).code == 0
    assert api.waits == 4


async def test_a_stop_signal_ends_the_wait(pod: RunnerPod, api: Any) -> None:
    pod.crew(CREW)
    await pod.start(**WARM)
    await wait_until((pod.app / "imported").exists)
    await wait_until(lambda: api.waits >= 1)
    pod.terminate()
    ended = await pod.wait()
    assert (ended.code, ended.termination["outcome"], api.claims) == (79, "stopped", 0)


async def test_a_refused_claim_never_calls_the_entrypoint(pod: RunnerPod, api: Any) -> None:
    pod.crew(CREW)
    api.claim_states = [{"state": "refused", "reason": "the run was given to another pod"}]
    api.bound.set()
    ended = await pod.run(**WARM)
    assert (ended.code, api.events, api.result) == (77, [], None)
    assert b"called" not in ended.stdout


async def test_a_script_starts_with_its_run(pod: RunnerPod, api: Any) -> None:
    pod.crew("import sys\nprint('started')\nprint('{\"read\": ' + sys.stdin.read().strip() + '}')\n")
    api.entrypoint = "main.py"
    api.input = {"a": 1}
    await pod.start(**{**WARM, "ENTRYPOINT": "main.py"})
    await wait_until(lambda: api.waits >= 2)
    api.bound.set()
    assert (await pod.wait()).code == 0
    assert api.result["output"] == {"read": {"a": 1}}


async def test_what_the_import_wrote_counts_against_the_disk_limit(pod: RunnerPod, api: Any) -> None:
    pod.crew("""
        import os, time
        def write(name):
            with open(name, "wb") as file: file.write(os.urandom(10 << 20))
        write("model")
        open("imported", "w").close()
        def kickoff():
            write("more")
            time.sleep(60)
    """)
    pod.environ = {"HOME": str(pod.app)}
    await pod.start(**WARM, STORAGE_LIMIT=str(20 << 20), SCRATCH="")
    await wait_until((pod.app / "imported").exists)
    waits = api.waits
    await wait_until(lambda: api.waits >= waits + 5)  # the files of the import are older than the run
    api.bound.set()
    await pod.wait()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "StorageExceeded")
