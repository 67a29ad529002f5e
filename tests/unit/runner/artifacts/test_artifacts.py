"""Artifacts of a running crew: stored when complete, again when changed, rejected by name."""

from __future__ import annotations

from typing import Any

import pytest

from runner.pid1.artifacts.content import content_type, encode_path
from runner.pid1.artifacts.upload_pool import MAX_PARALLEL_UPLOADS
from tests.unit.runner.conftest import wait_until


async def test_a_file_is_stored_when_closed_and_again_when_changed(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os, time
        def kickoff():
            closed = open("artifacts/closed.csv", "w")
            closed.write("1,2")
            closed.close()
            held = open("artifacts/held.txt", "w")
            held.write("begin ")
            held.flush()
            time.sleep(0.9)
            print("half time")
            while not os.path.exists("go"):
                time.sleep(0.01)
            held.write("end")
            held.close()
            with open("artifacts/closed.csv", "a") as again:
                again.write(",3")
        """
    )
    await pod.start()
    await wait_until(lambda: api.logs() == ["half time"] and api.artifacts)
    assert {name: versions[0].body for name, versions in api.artifacts.items()} == {"closed.csv": b"1,2"}
    (pod.app / "go").touch()
    await pod.wait()
    assert [version.body for version in api.artifacts["closed.csv"]] == [b"1,2", b"1,2,3"]
    assert [version.body for version in api.artifacts["held.txt"]] == [b"begin end"]
    assert api.result["artifacts"] == {"count": 2, "bytes": 14}


async def test_nested_and_hostile_names_and_an_empty_file(pod: Any, api: Any) -> None:
    names = [
        "a/b/c.txt",
        "sp ace%2F.txt",
        "ünïcode.md",
        "new\nline\r\n",
        "..hidden",
        "?q#f;",
        "\u2028",
        "back\\slash",
        "-rf",
        "...",
        "%2e%2e/%2f",
        "quote'\"` $(x)",
        "\x01\x07\x1b[31m\x7f",
        "n" * 255,
        "/".join(["ä" * 100] * 5),
        "output.json",
        "events.jsonl",
        "termination-log",
        ".crewyard",
        "CON",
    ]
    pod.crew(
        f"""
        import os
        def kickoff():
            for name in {names!r}:
                path = os.path.join("artifacts", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").close()
            open(b"artifacts/\\xff\\xfe", "w").close()
        """
    )
    await pod.run()
    assert sorted(api.artifacts) == sorted(names)
    assert api.result["outcome"] == "succeeded"
    [note] = api.logs("warning")
    assert "not UTF-8" in note


async def test_links_out_and_special_files_are_dropped_with_a_warning(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import os, socket
        def kickoff():
            os.makedirs("artifacts/deep")
            open("artifacts/deep/real.txt", "w").write("real")
            os.symlink("deep/real.txt", "artifacts/inside.txt")
            os.symlink("/etc/passwd", "artifacts/passwd")
            os.symlink("/proc/self/environ", "artifacts/environ")
            os.symlink("../main.py", "artifacts/up.py")
            os.symlink("/etc", "artifacts/etc")
            os.symlink("loop", "artifacts/loop")
            os.mkfifo("artifacts/fifo")
            socket.socket(socket.AF_UNIX).bind("artifacts/socket")
        """
    )
    ended = await pod.run()
    assert {name: versions[-1].body for name, versions in api.artifacts.items()} == {
        "deep/real.txt": b"real",
        "inside.txt": b"real",
    }
    warnings = "\n".join(api.logs("warning"))
    for name in ("passwd", "environ", "up.py", "etc", "fifo", "socket"):
        assert f"'{name}' is not stored" in warnings
    assert (ended.code, api.result["outcome"]) == (0, "succeeded")


async def test_a_rejected_artifact_fails_the_run_by_name(pod: Any, api: Any) -> None:
    api.refuse_artifacts = {"b.txt": "the run's quota is used up"}
    pod.crew("def kickoff():\n    for n in 'abc': open(f'artifacts/{n}.txt', 'w').write(n)\n    return 1")
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "ArtifactsLost")
    assert "b.txt: the service rejected it (the run's quota is used up)" in api.result["message"]
    assert api.result["artifacts"] == {"count": 2, "bytes": 2}


async def test_a_rejected_file_that_the_crew_removes_is_not_lost(pod: Any, api: Any) -> None:
    api.refuse_artifacts = {"draft~": "its name"}
    pod.crew(
        """
        import os, time
        def kickoff():
            open("artifacts/draft~", "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
            os.rename("artifacts/draft~", "artifacts/report.md")
        """
    )
    await pod.start()
    await wait_until(lambda: any("draft~" in message for message in api.logs("warning")))
    (pod.app / "go").touch()
    await pod.wait()
    assert (api.result["outcome"], list(api.artifacts)) == ("succeeded", ["report.md"])


async def test_a_file_that_gets_400_does_not_block_the_run(pod: Any, api: Any) -> None:
    api.break_artifacts = {"a"}
    pod.crew("def kickoff():\n    for n in 'ab': open(f'artifacts/{n}', 'w').write(n)")
    await pod.run()
    assert (api.result["reason"], list(api.artifacts)) == ("ArtifactsLost", ["b"])
    assert "a: the service responded 4xx to it repeatedly" in api.result["message"]


@pytest.mark.parametrize("limits", [{"artifacts": 2}, {"artifact_bytes": 10}])
async def test_above_the_limits_no_file_is_sent_and_the_outcome_stays(
    pod: Any, api: Any, limits: dict[str, int]
) -> None:
    api.limits = limits
    pod.crew("def kickoff():\n    for n in 'abc': open(f'artifacts/{n}', 'w').write(n * 4)")
    await pod.run()
    assert (sorted(api.artifacts), api.result["outcome"]) == (["a", "b"], "succeeded")
    [note] = api.logs("warning")
    assert "'c' is not stored: the limit of a run is" in note


async def test_an_output_above_the_limits_fails_the_run(pod: Any, api: Any) -> None:
    api.limits = {"artifacts": 2}
    pod.crew(
        "def kickoff():\n    for n in 'abc': open(f'artifacts/{n}', 'w').close()\n    return 'x' * 40_000"
    )
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "ArtifactsLost")
    assert "output.json, the output: the limit of a run is 2 files" in api.result["message"]


async def test_an_output_that_cannot_be_written_fails_the_run(pod: Any, api: Any) -> None:
    file = "shutil.rmtree('artifacts')\n    open('artifacts', 'w').close()"
    pod.crew(f"import shutil\ndef kickoff():\n    {file}\n    return 'x' * 40_000")
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "ArtifactsLost")
    assert "output of 40002 bytes is lost: output.json could not be written" in api.result["message"]


@pytest.mark.parametrize(
    ("killed", "returned", "partial"),
    [("after the return", "None", False), ("after the return", "1 / 0", False), ("before it", "None", True)],
)
async def test_files_are_partial_if_a_signal_ends_the_crew_before_its_report(
    pod: Any, api: Any, killed: str, returned: str, partial: bool
) -> None:
    pod.crew(
        f"""
        import atexit, os
        def kickoff():
            open("artifacts/a", "w").write("a")
            if {killed!r} == "before it":
                os.kill(os.getpid(), 9)
            atexit.register(os.kill, os.getpid(), 9)
            return {returned}
        """
    )
    await pod.run(SCAN_SECONDS="60")
    assert [version.partial for version in api.artifacts["a"]] == [partial]


async def test_a_failed_crew_keeps_its_artifacts_and_reason(pod: Any, api: Any) -> None:
    pod.crew("def kickoff():\n    open('artifacts/a', 'w').write('a')\n    raise ValueError('x')")
    await pod.run()
    assert api.result["reason"] == "CrewError"
    assert [version.partial for version in api.artifacts["a"]] == [False]


async def test_an_early_result_is_sent_again_with_the_missing_parts(pod: Any, api: Any) -> None:
    api.missing_first = [{"artifacts": ["a"]}, {"events": 1}, {}]
    pod.crew(
        "def kickoff():\n    open('artifacts/a', 'w').write('a')\n    open('artifacts/b', 'w').write('b')"
    )
    ended = await pod.run()
    assert (ended.code, api.results) == (0, 4)
    assert {name: len(versions) for name, versions in api.artifacts.items()} == {"a": 2, "b": 1}


async def test_four_files_are_uploaded_in_parallel_before_the_result(pod: Any, api: Any) -> None:
    api.uploads_together = MAX_PARALLEL_UPLOADS
    pod.crew(
        "def kickoff():\n    for n in range(9): open(f'artifacts/{n}', 'w').write('x' * n)\n    return 'done'"
    )
    await pod.run()
    assert api.max_parallel == MAX_PARALLEL_UPLOADS == 4
    assert api.result["artifacts"] == {"count": 9, "bytes": 36}


async def test_a_large_file_is_streamed(pod: Any, api: Any) -> None:
    api.keep_bodies = False
    pod.crew(
        "def kickoff():\n    with open('artifacts/big', 'wb') as f:\n"
        "        f.write(b'0123456789abcdef' * (2 << 20))"
    )
    await pod.run()
    assert api.result["artifacts"] == {"count": 1, "bytes": 32 << 20}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.md", "text/markdown; charset=utf-8"),
        ("data.json", "application/json"),
        ("x/y.PDF", "application/pdf"),
        ("none", "application/octet-stream"),
        ("evil.txt\r\nX-Header: 1", "application/octet-stream"),
        (".html\n", "application/octet-stream"),
    ],
)
def test_content_types_depend_only_on_the_extension(name: str, kind: str) -> None:
    assert content_type(name) == kind


def test_every_segment_is_encoded() -> None:
    assert encode_path("a b/c%2F?#\n") == "a%20b/c%252F%3F%23%0A"
