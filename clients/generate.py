"""Makes the clients' generated files: `python -m clients.generate`, called by `make clients` and by tests.

openapi-typescript is the one of clients/typescript/package-lock.json, oapi-codegen that of `make tools`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from api.openapi.document import document
from api.openapi.routes import OPERATIONS
from clients.document import URL, for_clients, for_go
from dev import settings

HERE = Path(__file__).parent
MADE = ("openapi.json", "typescript/src/schema.ts", "go/api.gen.go")
"""What is generated, below clients/."""
SECONDS = 300.0
_GO = {"package": "crewyard", "generate": {"models": True, "client": True}}


class Failed(Exception):
    """A generator is missing or refused the description; the text has its words."""


def description() -> dict[str, Any]:
    """What the clients are made of, from the code of the API."""
    return for_clients(document(OPERATIONS, URL))


def generate(into: Path, packages: Path) -> None:
    """Writes all of `MADE` below `into`; `packages` has node_modules. Raises Failed."""
    for name in MADE:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
    whole, typescript, go = (into / name for name in MADE)
    told = description()
    whole.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    script = packages / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    _run(["node", str(script), str(whole), "--output", str(typescript)])
    with tempfile.TemporaryDirectory() as place:
        form, config = Path(place, "openapi.json"), Path(place, "config.json")
        form.write_text(json.dumps(for_go(told)))
        config.write_text(json.dumps({**_GO, "output": str(go)}))
        _run([_oapi_codegen(), "-config", str(config), str(form)])


def install(packages: Path) -> None:
    """Has what the lock file names in `packages`/node_modules. Raises Failed."""
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], packages)


def _oapi_codegen() -> str:
    found = settings.from_environment(os.environ).bin / "oapi-codegen"
    if not found.exists():
        raise Failed(f"there is no {found}; `make tools` builds it")
    return str(found)


def _run(argv: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise Failed(
            f"{' '.join(argv[:2])} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
        )


def main() -> int:
    """Makes them in place; the exit code."""
    try:
        install(HERE / "typescript")
        generate(HERE, HERE / "typescript")
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
