"""Build log: lines in numbered chunks to the API, bounded, and to standard output."""

import io
import threading

from build.api_client import InternalApiClient
from build.logs import BuildLog, api_sender


def test_chunks_are_numbered_without_gaps_and_complete() -> None:
    sent: list[tuple[int, str]] = []
    log = BuildLog(lambda number, text: sent.append((number, text)) is None, io.StringIO())
    lines = [f"line {number}" for number in range(5000)]
    for line in lines:
        log.line(line)
    log.close()
    assert [number for number, _ in sent] == list(range(1, len(sent) + 1))
    assert "".join(text for _, text in sent).splitlines() == lines


def test_chunk_is_retried() -> None:
    calls: list[tuple[int, str]] = []

    def send(number: int, text: str) -> bool:
        calls.append((number, text))
        return len(calls) > 2

    log = BuildLog(send, io.StringIO())
    log.line("once")
    log.close()
    assert calls == [(1, "once\n")] * 3


def test_unavailable_api_loses_only_the_oldest_lines() -> None:
    available = threading.Event()
    sent: list[str] = []

    def send(number: int, text: str) -> bool:
        if available.is_set():
            sent.append(text)
        return available.is_set()

    out = io.StringIO()
    log = BuildLog(send, out)
    for number in range(3000):
        log.line(f"{number} {'x' * 1000}")
    available.set()
    log.close(60)
    text = "".join(sent)
    assert "lines were lost while the API was unavailable]" in text
    assert text.splitlines()[-1].startswith("2999 ")
    assert len(text) < 1_300_000
    assert len(out.getvalue().splitlines()) == 3000


def test_api_that_does_not_respond_does_not_delay_the_exit() -> None:
    released, is_sending = threading.Event(), threading.Event()

    def send(number: int, text: str) -> bool:
        is_sending.set()
        return released.wait(60)

    log = BuildLog(send, io.StringIO())
    log.line("hello")
    assert is_sending.wait(30)
    closing = threading.Thread(target=log.close, args=(0.1,), daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive() and not released.is_set()
    released.set()


def test_api_that_cannot_be_reached_is_no_error() -> None:
    client = InternalApiClient("http://127.0.0.1:9", "token", timeout=1)
    out = io.StringIO()
    log = BuildLog(api_sender(client, "dep-a", "pod", "assemble"), out)
    log.line("hello")
    log.close(timeout=0.3)
    assert out.getvalue() == "hello\n"


def test_control_characters_are_replaced() -> None:
    out = io.StringIO()
    BuildLog(None, out).line("a\r\nb\x1b[31m\u2028c")
    assert out.getvalue() == "a\ufffd\ufffdb\ufffd[31m\ufffdc\n"
