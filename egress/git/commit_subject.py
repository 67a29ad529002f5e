"""The first line of a commit's message. Pure. Called by controller.git.remote and build.source.fetch_git."""

from typing import Any

MAX_SUBJECT_LENGTH = 500
_CODECS = ("iso-8859-1", "iso8859-1", "latin-1", "latin1", "windows-1252", "shift_jis", "euc-jp", "gbk")


def subject_of(commit: Any) -> str:
    """Return the subject of a commit of pygit2."""
    return subject(commit.raw_message.decode(_codec(commit.message_encoding), "replace"))


def subject(message: str) -> str:
    """Return the first line of a commit message, printable and bounded."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    return "".join(letter if letter.isprintable() else " " for letter in first).strip()[:MAX_SUBJECT_LENGTH]


def _codec(encoding: str | None) -> str:
    """Return the encoding that a commit declares, if it is a known text encoding; else UTF-8."""
    return encoding if encoding and encoding.lower() in _CODECS else "utf-8"
