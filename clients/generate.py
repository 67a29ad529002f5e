"""Generates the client code: `python -m clients.generate`, called by `make clients` and tests.

openapi-typescript comes from clients/typescript/package-lock.json, oapi-codegen from `make tools`.
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
GENERATED_FILES = ("openapi.json", "typescript/src/schema.ts", "go/api.gen.go")
"""Generated files below clients/."""
TIMEOUT_SECONDS = 300.0
_GO = {"package": "crewyard", "generate": {"models": True, "client": True}}


class GenerateError(Exception):
    """A generator is missing or failed; the message contains its output."""


def description() -> dict[str, Any]:
    """Return the reduced OpenAPI document, built from the code of the API."""
    return for_clients(document(OPERATIONS, URL))


def generate(into: Path, packages: Path) -> None:
    """Write all GENERATED_FILES below `into`; `packages` has node_modules. Raises GenerateError."""
    for name in GENERATED_FILES:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
    document_file, typescript, go = (into / name for name in GENERATED_FILES)
    openapi = description()
    document_file.write_text(json.dumps(openapi, indent=1, ensure_ascii=False) + "\n")
    script = packages / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    _run(["node", str(script), str(document_file), "--output", str(typescript)])
    with tempfile.TemporaryDirectory() as temporary:
        go_document, config = Path(temporary, "openapi.json"), Path(temporary, "config.json")
        go_document.write_text(json.dumps(for_go(openapi)))
        config.write_text(json.dumps({**_GO, "output": str(go)}))
        _run([_oapi_codegen(), "-config", str(config), str(go_document)])


def install(packages: Path) -> None:
    """Install the packages of the lock file into `packages`/node_modules. Raises GenerateError."""
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], packages)


def _oapi_codegen() -> str:
    program = settings.from_environment(os.environ).bin / "oapi-codegen"
    if not program.exists():
        raise GenerateError(f"{program} does not exist; `make tools` builds it")
    return str(program)


def _run(argv: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GenerateError(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise GenerateError(
            f"{' '.join(argv[:2])} exited with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
        )


def main() -> int:
    """Generate the files in place; return the exit code."""
    try:
        install(HERE / "typescript")
        generate(HERE, HERE / "typescript")
    except GenerateError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
