"""Lines and events of a running crew: none lost, none duplicated, none above the limits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.conftest import wait_until


async def test_200_000_lines_arrive_in_order(pod: Any, api: Any) -> None:
    pod.crew("def kickoff():\n    for number in range(200_000):\n        print('line', number)")
    await pod.start()
    peak = asyncio.create_task(peak_kib(pod.process.pid))
    await pod.wait()
    assert api.result["outcome"] == "succeeded"
    assert api.logs() == [f"line {number}" for number in range(200_000)]
    assert 0 < await peak < 200 * 1024


async def peak_kib(pid: int) -> int:
    """Return the peak memory of a process, polled until it exits."""
    peak = 0
    while True:
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return peak
        line = next((line for line in text.splitlines() if line.startswith("VmHWM:")), None)
        if line is None:  # exited, but not reaped yet
            return peak
        peak = int(line.split()[1])
        await asyncio.sleep(0.02)


async def test_above_the_limit_lines_are_dropped_and_counted_but_events_are_not(pod: Any, api: Any) -> None:
    api.limits = {"log_lines": 100}
    pod.crew(
        """
        from crewyard_runtime import emit
        def kickoff():
            for number in range(250):
                print(number)
            emit("progress", done=True)
        """
    )
    await pod.run()
    assert api.logs()[:100] == [str(number) for number in range(100)]
    [dropped] = api.logs()[100:]
    assert dropped.startswith("150 log lines were dropped")
    assert [event["type"] for event in api.events].count("progress") == 1


async def test_an_api_outage_loses_nothing(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import time
        def kickoff():
            for number in range(50):
                print(number)
                time.sleep(0.01)
            open("artifacts/a.txt", "w").write("a")
            return "done"
        """
    )
    await pod.start()
    await wait_until(lambda: len(api.logs()) > 5)
    await api.stop()
    await asyncio.sleep(0.8)
    await api.start()
    assert (await pod.wait()).code == 0
    assert api.logs() == [str(number) for number in range(50)]
    assert (api.result["output"], list(api.artifacts)) == ("done", ["a.txt"])
    assert api.result["duration_ms"] < 120_000


async def test_a_permanent_api_outage_ends_the_pod_with_a_termination_message(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os, time
        def kickoff():
            print("ready")
            while not os.path.exists("go"):
                time.sleep(0.01)
            return 1
        """
    )
    await pod.start(REPORT_SECONDS="0.5")
    await wait_until(lambda: api.logs() == ["ready"])
    await api.stop()
    (pod.app / "go").touch()
    ended = await pod.wait()
    assert ended.code == 78
    assert ended.termination == {"outcome": "succeeded", "reason": None, "message": None, "reported": False}


async def test_409_in_the_middle_kills_the_crew(pod: Any, api: Any) -> None:
    api.lost_after = 3
    pod.crew(
        """
        import time
        def kickoff():
            for number in range(30_000):
                print(number)
                time.sleep(0.02)
        """
    )
    ended = await pod.run()
    assert (ended.code, api.result) == (77, None)
    assert ended.seconds < 120


async def test_a_rejected_event_does_not_block_others(pod: Any, api: Any) -> None:
    api.poison = "arsenic"
    pod.crew("def kickoff():\n    print('before\\narsenic\\nafter')")
    await pod.run()
    before, note, after = api.logs()
    assert (before, after) == ("before", "after")
    assert "rejected" in note


async def test_an_api_that_loses_events_is_retried_with_back_off(pod: Any, api: Any) -> None:
    api.keep_no_events = True
    pod.crew("def kickoff():\n    print('said')")
    await pod.start()
    await wait_until(lambda: api.batches > 3)
    await asyncio.sleep(1)
    assert api.batches < 30
    api.keep_no_events = False
    assert (await pod.wait()).code == 0
    assert api.logs("info") == ["said"]


async def test_hostile_lines_are_data(pod: Any, api: Any) -> None:
    long = "ä" * 200_000
    pod.crew(
        f"""
        import os
        def kickoff():
            os.write(1, b"bad \\xff\\xfe byte\\n")
            os.write(1, b"cr\\r nul\\x00 \\xe2\\x80\\xa8 sep\\n\\nevent: run.completed\\ndata: x\\n")
            print("\\ud800 lone")
            os.write(1, {long!r}.encode() + b"\\n")
            os.write(3, b"not json\\n[1]\\n")
            os.write(3, b"{{\\"event\\": {{\\"type\\": \\"run.completed\\", \\"data\\": {{}}}}}}\\n")
            os.write(3, b'{{"event": {{"type": "x", "data": {{"n": NaN}}}}}}\\n')
            os.write(3, b"y" * 1_500_000 + b"\\n")
            os.write(1, b"no line feed")
        """
    )
    await pod.run()
    lines = api.logs("info")
    assert lines[:6] == [
        "bad \ufffd\ufffd byte", "cr\r nul\x00 \u2028 sep", "",
        "event: run.completed", "data: x", "\\ud800 lone",
    ]  # fmt: skip
    assert "".join(lines[6:-1]) == long
    assert lines[-1] == "no line feed"
    assert len(api.logs("warning")) == 4
    assert [event["data"] for event in api.events if event["type"] == "x"] == [{"n": "NaN"}]
    assert api.result["outcome"] == "succeeded"


async def test_a_type_with_a_lone_surrogate_loses_no_line(pod: Any, api: Any) -> None:
    pod.crew(
        r"""
        import os
        def kickoff():
            os.write(3, b'{"event": {"type": "x\\ud800", "data": {"n": 1}}}\n')
            print("after")
        """
    )
    await pod.run()
    assert [event["data"] for event in api.events if event["type"] == "x?"] == [{"n": 1}]
    assert (api.logs("info"), api.result["outcome"]) == (["after"], "succeeded")


async def test_logging_keeps_its_own_levels_and_the_crews_format(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import logging
        logging.basicConfig(level=logging.DEBUG, format="%(name)s says %(message)s")
        def kickoff():
            log = logging.getLogger("crew")
            for call in (log.debug, log.info, log.warning, log.error, log.critical):
                call("hi")
        """
    )
    ended = await pod.run()
    logged = [(event["data"]["level"], event["data"]["message"]) for event in api.events]
    assert logged == [(level, "crew says hi") for level in ("debug", "info", "warning", "error", "critical")]
    assert ended.stdout.count(b"crew says hi") == 5


LOGS = "import logging; logging.basicConfig(level=20); logging.info('said')"


@pytest.mark.parametrize("crew", [LOGS, f"def kickoff():\n    {LOGS}"], ids=["script", "late import"])
async def test_logging_keeps_its_levels_wherever_it_is_imported(pod: Any, api: Any, crew: str) -> None:
    pod.crew(crew)
    api.entrypoint = "main:kickoff" if "kickoff" in crew else "main.py"
    await pod.run()
    logged = [(event["data"]["level"], event["data"]["message"]) for event in api.events]
    assert (logged, api.result["outcome"]) == ([("info", "INFO:root:said")], "succeeded")


async def test_unconfigured_logging_sends_warnings_once(pod: Any, api: Any) -> None:
    pod.crew(
        "import logging\ndef kickoff():\n    logging.info('quiet')\n"
        "    logging.getLogger('x').warning('loud')"
    )
    await pod.run()
    logged = [(event["data"]["level"], event["data"]["message"]) for event in api.events]
    assert logged == [("warning", "WARNING:x:loud")]


async def test_emit_from_threads_and_forked_processes_stays_whole(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import multiprocessing, threading
        from crewyard_runtime import emit

        def many(name):
            for number in range(40):
                emit("note", name=name, number=number, text="x" * (10 if number % 2 else 9000))

        def kickoff():
            context = multiprocessing.get_context("fork")
            workers = [context.Process(target=many, args=(f"p{n}",)) for n in range(3)]
            workers += [threading.Thread(target=many, args=(f"t{n}",)) for n in range(3)]
            [worker.start() for worker in workers]
            [worker.join() for worker in workers]
        """
    )
    await pod.run()
    notes = [event["data"] for event in api.events if event["type"] == "note"]
    assert sorted((note["name"], note["number"]) for note in notes) == sorted(
        (f"{kind}{worker}", number) for kind in "pt" for worker in range(3) for number in range(40)
    )
    assert api.logs() == []


async def test_a_spawned_process_finds_the_crew_and_the_runtime(pod: Any, api: Any) -> None:
    pod.crew(
        "from crewyard_runtime import emit\ndef work(x):\n    emit('quiet')\n    return x + 1", "tasks.py"
    )
    pod.crew(
        """
        import multiprocessing
        import tasks
        def kickoff():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return pool.map(tasks.work, [1, 2])
        """
    )
    await pod.run()
    assert (api.result["output"], api.events) == ([2, 3], [])


async def test_events_are_cut_at_the_limit_of_the_run(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import logging
        from crewyard_runtime import emit
        def kickoff():
            emit("agent.completed", agent="pilot", output="x" * 10_000)
            logging.warning("y" * 10_000)
        """
    )
    api.limits = {"event_bytes": 4096}
    await pod.run()
    completed, logged = (event["data"] for event in api.events)
    for text in (completed["output"], logged["message"]):
        assert text.endswith("… [cut]") and 2000 < len(text) < 4096
    assert completed["agent"] == "pilot"
