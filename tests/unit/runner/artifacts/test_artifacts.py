"""Files of a running crew: stored when whole, again when changed, refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from runner.pid1.artifacts.content import content_type, encoded
from tests.unit.runner.conftest import until


async def test_a_file_is_stored_when_closed_and_again_when_changed(pod: Any, facade: Any) -> None:
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
    await until(lambda: facade.logs() == ["half time"] and facade.artifacts)
    assert {name: versions[0].body for name, versions in facade.artifacts.items()} == {"closed.csv": b"1,2"}
    (pod.app / "go").touch()
    await pod.wait()
    assert [one.body for one in facade.artifacts["closed.csv"]] == [b"1,2", b"1,2,3"]
    assert [one.body for one in facade.artifacts["held.txt"]] == [b"begin end"]
    assert facade.result["artifacts"] == {"count": 2, "bytes": 14}


async def test_nested_and_hostile_names_and_an_empty_file(pod: Any, facade: Any) -> None:
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
    assert sorted(facade.artifacts) == sorted(names)
    assert facade.result["outcome"] == "succeeded"
    [note] = facade.logs("warning")
    assert "not UTF-8" in note


async def test_links_that_leave_and_special_files_are_dropped_and_said(pod: Any, facade: Any) -> None:
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
    assert {name: one[-1].body for name, one in facade.artifacts.items()} == {
        "deep/real.txt": b"real",
        "inside.txt": b"real",
    }
    said = "\n".join(facade.logs("warning"))
    for name in ("passwd", "environ", "up.py", "etc", "fifo", "socket"):
        assert f"'{name}' is not stored" in said
    assert (ended.code, facade.result["outcome"]) == (0, "succeeded")


async def test_a_refused_artifact_fails_the_run_by_name(pod: Any, facade: Any) -> None:
    facade.refuse_artifacts = {"b.txt": "the run's quota is used up"}
    pod.crew("def kickoff():\n    for n in 'abc': open(f'artifacts/{n}.txt', 'w').write(n)\n    return 1")
    await pod.run()
    assert (facade.result["outcome"], facade.result["reason"]) == ("failed", "ArtifactsLost")
    assert "b.txt: the service refused it (the run's quota is used up)" in facade.result["message"]
    assert facade.result["artifacts"] == {"count": 2, "bytes": 2}


async def test_a_file_that_the_facade_chokes_on_does_not_hold_the_run(pod: Any, facade: Any) -> None:
    facade.break_artifacts = {"a"}
    pod.crew("def kickoff():\n    for n in 'ab': open(f'artifacts/{n}', 'w').write(n)")
    await pod.run()
    assert (facade.result["reason"], list(facade.artifacts)) == ("ArtifactsLost", ["b"])
    assert "a: the service answered 4xx to it again and again" in facade.result["message"]


@pytest.mark.parametrize("limits", [{"artifacts": 2}, {"artifact_bytes": 10}])
async def test_above_the_limits_nothing_is_sent_and_the_run_ends_as_it_would(
    pod: Any, facade: Any, limits: dict[str, int]
) -> None:
    facade.limits = limits
    pod.crew("def kickoff():\n    for n in 'abc': open(f'artifacts/{n}', 'w').write(n * 4)")
    await pod.run()
    assert (sorted(facade.artifacts), facade.result["outcome"]) == (["a", "b"], "succeeded")
    [note] = facade.logs("warning")
    assert "'c' is not stored: a run keeps" in note


async def test_an_output_that_finds_no_place_fails_the_run(pod: Any, facade: Any) -> None:
    facade.limits = {"artifacts": 2}
    pod.crew(
        "def kickoff():\n    for n in 'abc': open(f'artifacts/{n}', 'w').close()\n    return 'x' * 40_000"
    )
    await pod.run()
    assert (facade.result["outcome"], facade.result["reason"]) == ("failed", "ArtifactsLost")
    assert "output.json, the output: a run keeps 2 files" in facade.result["message"]


async def test_an_output_that_cannot_be_written_fails_the_run(pod: Any, facade: Any) -> None:
    pod.crew("import shutil\ndef kickoff():\n    shutil.rmtree('artifacts')\n    return 'x' * 40_000")
    await pod.run()
    assert (facade.result["outcome"], facade.result["reason"]) == ("failed", "ArtifactsLost")
    assert "output of 40002 bytes is lost: output.json could not be written" in facade.result["message"]


async def test_a_failed_crew_keeps_its_artifacts_and_reason(pod: Any, facade: Any) -> None:
    pod.crew("def kickoff():\n    open('artifacts/a', 'w').write('a')\n    raise ValueError('x')")
    await pod.run()
    assert facade.result["reason"] == "CrewError"
    assert [one.partial for one in facade.artifacts["a"]] == [False]


async def test_a_result_that_comes_too_early_is_sent_again_with_what_is_missing(
    pod: Any, facade: Any
) -> None:
    facade.missing_first = [{"artifacts": ["a"]}, {"events": 1}, {}]
    pod.crew(
        "def kickoff():\n    open('artifacts/a', 'w').write('a')\n    open('artifacts/b', 'w').write('b')"
    )
    ended = await pod.run()
    assert (ended.code, facade.results) == (0, 4)
    assert {name: len(one) for name, one in facade.artifacts.items()} == {"a": 2, "b": 1}


async def test_four_files_are_sent_at_once_and_the_result_waits_for_all(pod: Any, facade: Any) -> None:
    facade.artifact_seconds = 0.1
    pod.crew(
        "def kickoff():\n    for n in range(9): open(f'artifacts/{n}', 'w').write('x' * n)\n    return 'done'"
    )
    await pod.run()
    assert facade.most_at_once == 4
    assert facade.result["artifacts"] == {"count": 9, "bytes": 36}


async def test_a_large_file_is_streamed(pod: Any, facade: Any) -> None:
    facade.keep_bodies = False
    pod.crew(
        "def kickoff():\n    with open('artifacts/big', 'wb') as f:\n"
        "        f.write(b'0123456789abcdef' * (2 << 20))"
    )
    await pod.run()
    assert facade.result["artifacts"] == {"count": 1, "bytes": 32 << 20}


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
def test_content_types_come_from_the_ending_alone(name: str, kind: str) -> None:
    assert content_type(name) == kind


def test_every_segment_is_encoded() -> None:
    assert encoded("a b/c%2F?#\n") == "a%20b/c%252F%3F%23%0A"
