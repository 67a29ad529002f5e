"""Workflows run by act on this machine, without containers."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.actions.runner import ROOT

WORKFLOWS = Path(__file__).parent / "workflows"
CREW = {
    "main.py": """
from pathlib import Path


def kickoff(inputs):
    print("::error::said by the crew")
    Path("artifacts/greeting.txt").write_text(f"hello, {inputs['name']}")
    return {"greeting": f"hello, {inputs['name']}"}
""",
    "crew.toml": '[deployment]\nframework = "python"\nentrypoint = "main:kickoff"\n',
    "notes/a": "x",
    "big.csv": "1,2\n",
}


def tool(name: str) -> str:
    """Return the path of the tool; skip the test if it is missing."""
    path = os.pathsep.join([os.environ.get("CREWYARD_TOOLS", ""), os.environ["PATH"]])
    executable = shutil.which(name, path=path)
    if not executable:
        pytest.skip(f"there is no {name} on PATH or in CREWYARD_TOOLS")
    return executable


@dataclass
class ActRepository:
    """A repository with the actions and a crew, whose workflows act runs."""

    home: Path
    secrets: dict[str, str]

    async def run(
        self, workflow: str, seconds: float = 900, variables: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Run a workflow; return its exit code and log. `variables` extend its environment."""
        file = self.home / "secrets"
        file.write_text("".join(f"{name}={value}\n" for name, value in self.secrets.items()))
        process = await asyncio.create_subprocess_exec(
            tool("act"),
            "push",
            *("-W", str(WORKFLOWS / workflow), "-P", "ubuntu-latest=-self-hosted"),
            *(f"--env={name}={value}" for name, value in (variables or {}).items()),
            *("--secret-file", str(file), "--artifact-server-path", "", "--cache-server-path", ""),
            cwd=self.home / "repository",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "XDG_CACHE_HOME": str(self.home / "cache"),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        raw, _ = await asyncio.wait_for(process.communicate(), seconds)
        return process.returncode or 0, raw.decode()


def repository_with_crew(home: Path) -> None:
    """Create a repository with the actions and the crew in one commit."""
    repository = home / "repository"
    shutil.copytree(ROOT / "actions", repository / "actions", ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in CREW.items():
        path = repository / "crew" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    author = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*author, "commit", "-q", "-m", "Say 'hi' $(id)"],
    ):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
