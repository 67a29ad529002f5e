"""What is fuzzed: a function of bytes, the packages it covers, and bytes to begin with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class FuzzTarget:
    """`run` raises nothing but what is a bug: exceptions that the code declares are taken in it.

    `packages` are those whose branches guide the search; `longest` is in bytes.
    """

    name: str
    packages: tuple[str, ...]
    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    longest: int = 4096


def parts(data: bytes, count: int) -> list[bytes]:
    """`data` cut at its bytes 0xFF into exactly `count` parts, missing ones empty."""
    found = data.split(b"\xff", count - 1)
    return found + [b""] * (count - len(found))


def words(*texts: str | bytes) -> list[bytes]:
    """Texts as seeds."""
    return [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]


def as_text(data: bytes) -> str:
    """Return the text of a header or a path as aiohttp decodes it."""
    return data.decode("utf-8", "surrogateescape")
