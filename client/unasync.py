"""Generator of crewyard/client.py, the synchronous form of crewyard/async_client.py.

`python3 client/unasync.py` writes it; a test fails if the file is out of date. Standard library only.
"""

import re
from pathlib import Path

PACKAGE = Path(__file__).parent / "crewyard"
REPLACEMENTS = (
    (
        "The asynchronous client. `python3 client/unasync.py` generates `crewyard.client` from it.",
        "The synchronous client. Generated from crewyard/async_client.py by `python3 client/unasync.py`.",
    ),
    (r"\bimport asyncio\b", "import time"),
    (r"\bawait asyncio\.sleep\b", "time.sleep"),
    (
        r"\bAsyncIterable, AsyncIterator, Awaitable, Callable, Mapping\b",
        "Callable, Iterable, Iterator, Mapping",
    ),
    (r"\bAwaitable\[T\]", "T"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncRunCalls\b", "RunCalls"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncIterable\b", "Iterable"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\baiter_text\b", "iter_text"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
)


def synchronous(text: str) -> str:
    """Return the source of the synchronous client for the source of the asynchronous one."""
    for pattern, replacement in REPLACEMENTS:
        text = (
            re.sub(pattern, replacement, text) if pattern[0] == "\\" else text.replace(pattern, replacement)
        )
    return text


def main() -> None:
    """Write the file."""
    source = (PACKAGE / "async_client.py").read_text("utf-8")
    (PACKAGE / "client.py").write_text(synchronous(source), "utf-8")


if __name__ == "__main__":
    main()
