"""First build and code-only redeploy of the LangGraph example, POST → active, through uploads."""

import secrets
import time
from pathlib import Path

from bench.crew import deploy
from tests.e2e.yard import Yard

EXAMPLE = Path(__file__).parents[1] / "examples" / "langgraph"


def _files(note: str) -> dict[str, bytes]:
    files = {str(p.relative_to(EXAMPLE)): p.read_bytes() for p in sorted(EXAMPLE.rglob("*")) if p.is_file()}
    return {
        **{name: data for name, data in files.items() if "__pycache__" not in name},
        "note.txt": note.encode(),
    }


async def measure(yard: Yard, count: int) -> tuple[float, list[float]]:
    """Seconds of the first build in a new project, and of `count` redeploys that change code only."""
    project = f"bench-{secrets.token_hex(3)}"
    await yard.post("/v1/projects", {"name": project, "plan": "pro"})
    begun = time.monotonic()
    await deploy(yard, project, _files("first"), "First")
    first = time.monotonic() - begun
    again = []
    for number in range(count):
        begun = time.monotonic()
        await deploy(yard, project, _files(f"change {number}"), f"Change {number}")
        again.append(time.monotonic() - begun)
    await yard.kubectl("delete", "cproj", project, "--wait=false")
    return first, again
