"""Makes crewyard/client.py of crewyard/async_client.py: the same calls, waited for instead of awaited.

`python3 client/unasync.py` writes it; a test says when that was forgotten. Standard library only.
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).parent / "crewyard"
WORDS = (
    (
        "The client whose calls are awaited. `crewyard.client` is made of it by `python3 client/unasync.py`.",
        "The client that waits. Made of crewyard/async_client.py by `python3 client/unasync.py`.",
    ),
    (r"\bimport asyncio\b", "import time"),
    (r"\bawait asyncio\.sleep\b", "time.sleep"),
    (
        r"\bAsyncIterable, AsyncIterator, Awaitable, Callable, Mapping\b",
        "Callable, Iterable, Iterator, Mapping",
    ),
    (r"\bAwaitable\[T\]", "T"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncIterable\b", "Iterable"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
)


def waiting(text: str) -> str:
    """The source of the client that waits, of the source of the one to await."""
    for word, other in WORDS:
        text = re.sub(word, other, text) if word[0] == "\\" else text.replace(word, other)
    return text


def main() -> None:
    """Writes the file."""
    source = (PACKAGE / "async_client.py").read_text("utf-8")
    (PACKAGE / "client.py").write_text(waiting(source), "utf-8")


if __name__ == "__main__":
    main()
