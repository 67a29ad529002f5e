"""A crew that runs to its end: lines, events, artifacts, output."""

from __future__ import annotations

from typing import Any


async def test_a_crew_runs_and_everything_it_said_arrives(pod: Any, facade: Any) -> None:
    facade.input = {"topic": "tea"}
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
    assert ended.stderr.splitlines() == ["crewyard: the run's pod is up and asks for its run"]
    assert facade.result["outcome"] == "succeeded"
    assert facade.result["output"] == {"topic": "tea", "run": "run_01abc"}
    assert facade.logs("info") == ["first line"]
    assert facade.logs("error") == ["to stderr"]
    assert [event["data"] for event in facade.events if event["type"] == "progress"] == [{"done": 1, "of": 2}]
    [report] = facade.artifacts["report.md"]
    assert (report.body, report.partial, report.content_type) == (
        b"# tea",
        False,
        "text/markdown; charset=utf-8",
    )
    assert set(ended.stdout.splitlines()) == {b"first line", b"to stderr"}
    assert ended.termination == {"outcome": "succeeded", "reason": None, "message": None, "reported": True}
