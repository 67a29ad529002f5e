"""Artifacts: many, and with hostile names."""

import os
from pathlib import Path

ARTIFACTS = Path("artifacts")


def many(inputs):
    """Writes as many small files as are asked for."""
    for number in range(int(inputs["count"])):
        directory = ARTIFACTS / f"{number % 10}"
        directory.mkdir(exist_ok=True)
        (directory / f"{number}.txt").write_text(f"file {number}")


def hostile(inputs):
    """Writes files with the names that are asked for, and what is no file of the directory."""
    for name in inputs["names"]:
        (ARTIFACTS / name).write_text(name)
    (ARTIFACTS / "inside").symlink_to("plain.txt")
    (ARTIFACTS / "outside").symlink_to("/etc/passwd")
    os.mkfifo(ARTIFACTS / "pipe")


def elsewhere(inputs):
    """Writes beside the artifacts: what the configuration keeps, a file of the repository, and another."""
    Path("kept").mkdir()
    Path("kept/log.txt").write_text("kept")
    with Path("absent.py").open("a") as file:
        file.write("# changed")
    Path("other.txt").write_text("lost")


def too_many(inputs):
    """Writes one file more than a run keeps."""
    many({"count": 1001})


def no_room(inputs):
    """Leaves no place for its output, which is too large to be kept elsewhere than in a file."""
    many({"count": 1000})
    return "x" * 100_000


def page(inputs):
    """Leaves a page that would do harm where it were read as HTML."""
    text = "# A heading\n\n<script>window.stolen = 1</script>\n\n<img src=x onerror='window.stolen = 1'>\n\n"
    Path("artifacts/page.md").write_text(f"{text}[a link](javascript:window.stolen=1)\n")
    return inputs
