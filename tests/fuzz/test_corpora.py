"""Every target over its seeds, over what was once found, and over changes of both drawn by fixed numbers."""

import random
from pathlib import Path

import pytest

from tests.fuzz.every import TARGETS

FOUND = Path(__file__).parent / "found"
CHANGES = 400
_TOKENS = (
    b"\0",
    b"\xff",
    b"\r\n",
    b"\n\n",
    b"[" * 50,
    b"9" * 30,
    b"..",
    b"/",
    b'"',
    b"\\",
    b"\xe2\x80\xa8",
    b"%00",
    b"-1",
    b"{}",
)


def known(name: str) -> list[bytes]:
    """The seeds of a target and what the fuzzer found for it."""
    found = [path.read_bytes() for path in sorted((FOUND / name).glob("*"))]
    return [*TARGETS[name].seeds(), *found, b"", b"\0", b"\xff"]


def changed(data: bytes, chance: random.Random) -> bytes:
    """One to three small changes."""
    text = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place = chance.randint(0, len(text))
        match chance.randint(0, 3):
            case 0:
                text[place : place + 1] = bytes([chance.randint(0, 255)])
            case 1:
                del text[place : place + chance.randint(1, 16)]
            case 2:
                text[place:place] = chance.choice(_TOKENS)
            case _:
                text[place:place] = text[chance.randint(0, len(text)) :][:32]
    return bytes(text)


@pytest.mark.parametrize("name", TARGETS)
def test_only_declared_exceptions_are_raised(name):
    target, chance, start = TARGETS[name], random.Random(name), known(name)
    for data in start:
        target.run(data)
    for _ in range(CHANGES):
        target.run(changed(chance.choice(start), chance)[: 2 * target.longest])


def test_every_finding_has_a_target():
    assert {path.name for path in FOUND.glob("*") if path.is_dir()} <= set(TARGETS)
