"""Starts the programs of the actions as the GitHub Actions runner does."""

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.actions.service import KEY, FakeService

ROOT = Path(__file__).parents[2]


@dataclass
class StepResult:
    """Result of a step: exit code, log, outputs, summary."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str

    @property
    def commands(self) -> list[str]:
        """The commands in the log that the runner executes: those outside stop-commands."""
        stopped, found = None, []
        for line in re.split(r"\r\n|\r|\n", self.log):
            text = line.lstrip()
            if stopped:
                stopped = None if text == f"::{stopped}::" else stopped
            elif text.startswith("::stop-commands::"):
                stopped = text.removeprefix("::stop-commands::")
            elif text.startswith("::") or "##[" in line:
                found.append(text)
        return found

    def errors(self) -> list[str]:
        return [command for command in self.commands if command.startswith("::error")]


def read_outputs(path: Path) -> dict[str, str]:
    """Return GITHUB_OUTPUT, parsed as the runner does."""
    found, lines = {}, iter(path.read_text("utf-8").split("\n"))
    for line in lines:
        if not line:
            continue
        name, _, end = line.partition("<<")
        value = []
        for part in lines:
            if part == end:
                break
            value.append(part)
        found[name] = "\n".join(value)
    return found


@dataclass
class ActionRunner:
    """The workspace and environment that the GitHub Actions runner provides to a step."""

    home: Path
    service: FakeService
    url: str
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    def git(self, *arguments: str) -> str:
        author = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
        return subprocess.run(
            ["git", *author, "-C", str(self.workspace), *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self, files: dict[str, str | bytes], message: str = "First") -> str:
        """Write and commit files of the workspace."""
        for name, content in files.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if not (self.workspace / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def variables(self, **inputs: str) -> dict[str, str]:
        values = {"api_url": self.url, "api_key": KEY, **inputs}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "RUNNER_TEMP": str(self.home),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(self.home / "output"),
            "GITHUB_STEP_SUMMARY": str(self.home / "summary"),
            "GITHUB_REPOSITORY": "team/crew",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_JOB": "deploy",
            **{f"CREWYARD_INPUT_{name.upper()}": value for name, value in values.items()},
            **self.environment,
        }

    async def start(self, action: str, **inputs: str) -> asyncio.subprocess.Process:
        for name in ("output", "summary"):
            (self.home / name).write_bytes(b"")
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(ROOT / "actions" / action / f"{action}.py"),
            cwd=self.workspace,
            env=self.variables(**inputs),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def done(self, process: asyncio.subprocess.Process, seconds: float = 600) -> StepResult:
        raw, _ = await asyncio.wait_for(process.communicate(), seconds)
        log = raw.decode("utf-8")
        assert f'File "{ROOT}' not in log, log  # no traceback of the action
        summary = (self.home / "summary").read_text("utf-8")
        return StepResult(process.returncode or 0, log, read_outputs(self.home / "output"), summary)

    async def deploy(self, **inputs: str) -> StepResult:
        return await self.done(await self.start("deploy", **{"project": "research", **inputs}))

    async def run(self, **inputs: str) -> StepResult:
        return await self.done(await self.start("run", **{"project": "research", **inputs}))
