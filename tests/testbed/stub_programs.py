"""Stub programs: executables that record their calls and print configured responses.

For scripts around docker, kind and kubectl, where the real programs cannot run.
Each call is a line of JSON in a file; the first response whose words begin the
call's arguments is used. A response may `set` and `unset` marks, which later
responses can require with `when` and `unless`.
"""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

# Without site packages: Python starts in a third of the time.
_PROGRAM = """#!{python} -IS
import json, sys
directory, name = {directory!r}, {name!r}
words = sys.argv[1:]
with open(directory + "/calls", "a") as calls:
    calls.write(json.dumps([name, *words]) + "\\n")
with open(directory + "/marks") as file:
    marks = set(json.load(file))
with open(directory + "/" + name + ".json") as file:
    responses = json.load(file)
for response in responses:
    expected = response["words"]
    if words[:len(expected)] != expected and not (response["anywhere"] and set(expected) <= set(words)):
        continue
    if response["when"] and response["when"] not in marks:
        continue
    if response["unless"] and response["unless"] in marks:
        continue
    if response["set"]: marks.add(response["set"])
    marks.discard(response["unset"])
    if response["set"] or response["unset"]:
        with open(directory + "/marks", "w") as file:
            json.dump(sorted(marks), file)
    sys.stdout.write(response["stdout"])
    sys.stderr.write(response["stderr"])
    sys.exit(response["code"])
sys.exit("stub " + name + " has no response to: " + " ".join(words))
"""


@dataclass(frozen=True)
class StubResponse:
    """Response to a call that begins with `words` (or has them `anywhere`)."""

    words: tuple[str, ...]
    stdout: str = ""
    stderr: str = ""
    code: int = 0
    when: str = ""
    unless: str = ""
    set: str = ""
    unset: str = ""
    anywhere: bool = False


class StubPrograms:
    """A directory for PATH with the added stub programs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        self.bin.mkdir(parents=True)
        (directory / "calls").touch()
        (directory / "marks").write_text("[]")

    def add(self, name: str, *responses: StubResponse) -> None:
        """Add a program; more specific responses first."""
        (self.directory / f"{name}.json").write_text(json.dumps([asdict(response) for response in responses]))
        text = _PROGRAM.format(python=sys.executable, directory=str(self.directory), name=name)
        file = self.bin / name
        file.write_text(text)
        file.chmod(0o755)

    def responses(self, name: str) -> list[StubResponse]:
        """Return the responses of a program."""
        return [
            StubResponse(**{**response, "words": tuple(response["words"])})
            for response in json.loads((self.directory / f"{name}.json").read_text())
        ]

    def mark(self, name: str) -> None:
        """Set a mark."""
        marks = set(json.loads((self.directory / "marks").read_text()))
        (self.directory / "marks").write_text(json.dumps(sorted({*marks, name})))

    def calls(self, program: str) -> list[list[str]]:
        """Return the arguments of all calls of a program, in order."""
        lines = (self.directory / "calls").read_text().splitlines()
        return [call[1:] for call in map(json.loads, lines) if call[0] == program]
