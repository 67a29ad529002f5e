"""A git repository as a team has it: a bare one that is served, and a working tree that is pushed.

Called by the demonstration and the end-to-end tests; uses the git on this machine.
"""

import os
import shutil
import subprocess
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Crewyard demo",
    "GIT_AUTHOR_EMAIL": "demo@example.com",
    "GIT_COMMITTER_NAME": "Crewyard demo",
    "GIT_COMMITTER_EMAIL": "demo@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


class Repository:
    """`<root>/<name>.git`, served, and `<root>/<name>`, worked in."""

    def __init__(self, root: Path, name: str) -> None:
        self.bare = root / f"{name}.git"
        self.work = root / name
        if not self.bare.exists():
            root.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), at=root)
            self._git("init", "--quiet", "--initial-branch=main", str(self.work), at=root)
            self.git("remote", "add", "origin", str(self.bare))

    def _git(self, *arguments: str, at: Path) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at,
            env={**os.environ, **_IDENTITY},
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def git(self, *arguments: str) -> str:
        """Runs git in the working tree and gives what it prints."""
        return self._git(*arguments, at=self.work)

    def copy(self, source: Path) -> None:
        """Makes the working tree equal to a directory."""
        for path in self.work.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(source, self.work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, files: dict[str, str]) -> None:
        """Writes files into the working tree."""
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def push(self, message: str, branch: str = "main") -> str:
        """Commits everything, pushes it, and gives the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        self.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")
