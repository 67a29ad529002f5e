"""File names that mean something to a header, a terminal, a stream or an eye: from a crew to a disk."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import aiohttp

from tests.e2e.conftest import BuiltCrew
from tests.fuzz.eventstream import messages

ROOT = Path(__file__).parents[2]
NAMES = [
    "a\rb.txt",
    "a\nb.txt",
    "\r\n\r\nevent: run.failed\r\ndata: {}",
    "\u2028\u2029\u0085.md",
    "\u202egpj.exe",
    "\u200b\ufeff",
    'quote".txt',
    "back\\slash",
    "..\\..\\up",
    "percent%2e%2e%2fx",
    "semi;colon=a",
    "-rf",
    "~",
    "$(id)`id`",
    "\x1b[2J\x1b]0;title\x07",
    "é" * 127,
    "x" * 255,
    "deep/" * 20 + "end",
    "::error file=a::b",
]
CREW = f"""
from pathlib import Path

def kickoff(inputs):
    for number, name in enumerate({NAMES!r}):
        place = Path("artifacts") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(str(number))
"""


async def test_hostile_names_are_data(testbed, upload_projects, tmp_path):
    """Slow: a whole build, and a run with an artifact for each name."""
    upload_project = await upload_projects()
    run = await BuiltCrew(
        testbed, upload_project.project, await upload_project.deploy_and_wait({"main.py": CREW})
    ).run("kickoff")
    assert run["status"] == "succeeded", run["error"]
    path = f"{testbed.url}/v1/runs/{run['id']}"

    listed = await testbed.get(f"/v1/runs/{run['id']}/artifacts", per_page="100")
    assert sorted(item["name"] for item in listed) == sorted(NAMES)

    head = {"Authorization": f"Bearer {testbed.key}"}
    async with aiohttp.ClientSession(headers=head) as session:
        async with session.get(f"{path}/events", headers={"Accept": "text/event-stream"}) as answer:
            stream = (await answer.read()).decode()
        stream_messages = list(messages(stream))
        assert [kind for kind, _, _ in stream_messages][-1] == "run.completed"
        assert [number for _, _, number in stream_messages] == [
            str(n) for n in range(1, len(stream_messages) + 1)
        ]
        assert [kind for kind, _, _ in stream_messages].count("artifact") == len(NAMES)
        for number, name in enumerate(NAMES):
            async with session.get(f"{path}/artifacts/{quote(name, safe='/')}") as answer:
                assert (await answer.read()) == str(number).encode(), name
                # An independent parser of such headers gives back the file's own name.
                disposition = answer.content_disposition
                assert (disposition.type, disposition.filename) == ("attachment", name.rpartition("/")[2])
                assert answer.headers["X-Content-Type-Options"] == "nosniff"

    await told_by_the_command(testbed, run["id"], tmp_path)


async def told_by_the_command(testbed, run: str, tmp_path: Path) -> None:
    """The command writes each file under its own name, and none beside."""
    target = tmp_path / "here"
    environment = {"CREWYARD_URL": testbed.url, "CREWYARD_API_KEY": testbed.key}
    environment |= {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = f"{ROOT / 'client'}:{ROOT}"
    done = subprocess.run(
        [sys.executable, "-m", "crewyard.cli.main", "artifacts", run, "--download", str(target)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    found = {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {name: str(number) for number, name in enumerate(NAMES)}
    assert {path.name for path in tmp_path.iterdir()} <= {"here", ".config", ".cache"}
    # Standard output is a pipe here, and the paths in it are data; what is for people is on the other one.
    assert not set(done.stderr) & set(b"\x1b\x07\r")
