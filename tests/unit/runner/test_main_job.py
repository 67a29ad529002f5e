"""A successful run: lines, events, artifacts, output."""

from __future__ import annotations

from typing import Any


async def test_a_crew_runs_and_all_its_output_arrives(pod: Any, api: Any) -> None:
    api.input = {"topic": "tea"}
    pod.crew(
        """
        import os, sys
        from crewyard_runtime import emit

        def kickoff(inputs):
            print("first line")
            emit("progress", done=1, of=2)
            with open("artifacts/report.md", "w") as file:
                file.write("# " + inputs["topic"])
            print("to stderr", file=sys.stderr)
            return {"topic": inputs["topic"], "run": os.environ["CREWYARD_RUN_ID"]}
        """
    )
    ended = await pod.run()
    assert ended.code == 0
    assert ended.stderr.splitlines() == ["crewyard: the run pod has started and claims its run"]
    assert api.result["outcome"] == "succeeded"
    assert api.result["output"] == {"topic": "tea", "run": "run_01abc"}
    assert api.logs("info") == ["first line"]
    assert api.logs("error") == ["to stderr"]
    assert [event["data"] for event in api.events if event["type"] == "progress"] == [{"done": 1, "of": 2}]
    [report] = api.artifacts["report.md"]
    assert (report.body, report.partial, report.content_type) == (
        b"# tea",
        False,
        "text/markdown; charset=utf-8",
    )
    assert set(ended.stdout.splitlines()) == {b"first line", b"to stderr"}
    assert ended.termination == {"outcome": "succeeded", "reason": None, "message": None, "reported": True}


async def test_the_crew_gets_the_trace_of_its_run(pod: Any, api: Any) -> None:
    pod.crew("import os\ndef kickoff(inputs): return os.environ.get('TRACEPARENT')")
    api.settings = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    assert (await pod.run()).code == 0
    assert api.result["output"] == api.settings["traceparent"]


async def test_without_a_trace_the_crew_gets_none(pod: Any, api: Any) -> None:
    pod.crew("import os\ndef kickoff(inputs): return 'TRACEPARENT' in os.environ")
    assert (await pod.run()).code == 0
    assert api.result["output"] is False
