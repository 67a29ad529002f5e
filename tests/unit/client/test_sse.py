"""The parser of Server-Sent Events, for every way to split the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewyard import sse
from crewyard.sse import SSEMessage, SSEReader

TEXT = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=("Cs",)), max_size=20)
END = st.sampled_from(["\n", "\r\n", "\r"])


def read(text: bytes, sizes=()):
    reader, found = SSEReader(), []
    at = 0
    for size in [*sizes, len(text)]:
        found += reader.feed(text[at : at + size])
        at += size
    return reader, found


@given(st.lists(st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3), TEXT), max_size=4), END, st.data())
def test_messages_are_parsed_at_any_chunk_border(messages, end, data):
    sent = "".join(
        f"id: {identifier}{end}event: {kind}{end}" + "".join(f"data: {line}{end}" for line in lines) + end
        for kind, lines, identifier in messages
    ).encode()
    sizes = data.draw(st.lists(st.integers(1, 7), max_size=len(sent)))
    _, found = read(sent + b": end\n", sizes)
    assert found == [
        SSEMessage(kind or "message", "\n".join(lines), identifier) for kind, lines, identifier in messages
    ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (b"data: a\n\n", [SSEMessage("message", "a", "")]),
        (b"data:a\n\n", [SSEMessage("message", "a", "")]),
        (b"data:  a\n\n", [SSEMessage("message", " a", "")]),
        (b"data\n\n", [SSEMessage("message", "", "")]),
        (b"event: x\n\n", []),
        (b": keepalive\n\n", []),
        (b"data: a\ndata: b\n\n", [SSEMessage("message", "a\nb", "")]),
        (b"data: a\n", []),
        (b"what: a\ndata: b\n\n", [SSEMessage("message", "b", "")]),
    ],
)
def test_the_forms_of_the_standard(text, messages):
    assert read(text)[1] == messages


def test_id_and_retry_outlive_a_connection():
    reader, _ = read(b"retry: 1500\nid: 7\ndata: a\n\ndata: half")
    reader.restart()
    assert list(reader.feed(b"data: b\n\n")) == [SSEMessage("message", "b", "7")]
    assert reader.retry == 1.5
    for text in (b"9" * 400, b"9" * 5000, b"-1", b"1e3"):
        list(reader.feed(b"retry: " + text + b"\n"))
    assert reader.retry == 1.5


def test_the_id_of_a_message_that_is_cut_off_is_dropped():
    reader, _ = read(b"id: 7\ndata: a\n\nid: 8\nevent: x\ndata: half")
    assert reader.last_id == "7"
    reader.restart()
    assert list(reader.feed(b"data: b\n\n")) == [SSEMessage("message", "b", "7")]


def test_an_id_with_a_nul_is_ignored():
    assert read(b"id: 7\nid: 8\0\ndata: a\n\n")[1] == [SSEMessage("message", "a", "7")]


def test_an_endless_message_is_rejected(monkeypatch):
    monkeypatch.setattr(sse, "MAX_MESSAGE_BYTES", 100)
    with pytest.raises(sse.MessageTooLong):
        read(b"data: " + b"x" * 200)
    with pytest.raises(sse.MessageTooLong):
        read(b"data: x\n" * 200)
