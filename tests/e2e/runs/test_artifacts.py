"""Artifacts in number, and with hostile names."""

from urllib.parse import quote

import pytest

HOSTILE = [
    "plain.txt",
    "-rf",
    "..hidden",
    ".dot",
    "two words.txt",
    "quo\"te's.txt",
    "100%25.txt",
    "new\nline.txt",
    "tab\tname",
    "ümläut-日本.txt",
    "a" * 250 + ".txt",
    "back\\slash",
    "<script>.html",
    "con?query#fragment",
]


@pytest.mark.nightly
async def test_thousand_files(testbed, crew):
    """Slow: uploads and lists a thousand files."""
    run = await crew.run("files:many", input={"count": 1000})
    assert run["status"] == "succeeded", run.get("error")
    found = {}
    for page in range(1, 11):
        listed = await testbed.get(f"/v1/runs/{run['id']}/artifacts", per_page="100", page=str(page))
        found.update({item["name"]: item["size"] for item in listed})
    assert len(found) == 1000
    assert found == {f"{n % 10}/{n}.txt": len(f"file {n}") for n in range(1000)}
    answer = await testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/7/777.txt")
    assert answer.body == b"file 777"
    events = await testbed.events(run["id"])
    assert sum(message.event == "artifact" for message in events) == 1000
    assert events[-1].event == "run.completed"


async def test_files_beside_the_artifacts_are_kept_or_named(testbed, crew):
    run = await crew.run("files:elsewhere")
    assert run["status"] == "succeeded", run.get("error")
    listed = await testbed.get(f"/v1/runs/{run['id']}/artifacts")
    assert [item["name"] for item in listed] == ["kept/log.txt"]
    logs = [m.data for m in await testbed.events(run["id"]) if m.event == "log"]
    [warning] = [data["message"] for data in logs if data["level"] == "warning"]
    assert "not stored: absent.py, other.txt." in warning
    assert warning.endswith('[artifacts] include = ["/absent.py", "/other.txt"]')


@pytest.mark.nightly
async def test_file_over_the_limit_is_reported(testbed, crew):
    """Slow: uploads files until the limit of a thousand."""
    run = await crew.run("files:too_many")
    assert run["status"] == "succeeded", run.get("error")
    logs = " ".join(m.data["message"] for m in await testbed.events(run["id"]) if m.event == "log")
    assert "the limit of a run is 1000 files" in logs


async def test_output_without_disk_space_fails_the_run(crew):
    """Slow: uploads a thousand files, which leave no room for the output."""
    run = await crew.run("files:no_room")
    assert (run["status"], run["error"]["reason"]) == ("failed", "ArtifactsLost")
    assert "output" in run["error"]["message"]


async def test_hostile_names_are_stored_or_reported(testbed, crew):
    run = await crew.run("files:hostile", input={"names": HOSTILE})
    listed = {item["name"] for item in await testbed.get(f"/v1/runs/{run['id']}/artifacts", per_page="100")}
    logs = " ".join(m.data["message"] for m in await testbed.events(run["id"]) if m.event == "log")
    for name in HOSTILE:
        if name in listed:
            path = "/".join(quote(part, safe="") for part in name.split("/"))
            answer = await testbed.call("GET", f"{testbed.url}/v1/runs/{run['id']}/artifacts/{path}")
            assert (answer.status, answer.body) == (200, name.encode()), name
            disposition = answer.headers["Content-Disposition"]
            assert "\n" not in disposition and "\r" not in disposition
        else:
            assert repr(name)[1:-1][:40] in logs, name
    assert {"plain.txt", "inside", "-rf", ".dot", "two words.txt", "ümläut-日本.txt"} <= listed
    assert "outside" not in listed and "'outside' is not stored" in logs
    assert "pipe" not in listed and "'pipe' is not stored" in logs
    assert "root:" not in logs
