"""What a crew writes and what a client reads: lines, marks, events, results of build pods, event streams."""

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from api.internal import event_validation
from api.internal.context import PodApiError
from api.store.index.artifacts import ArtifactRow
from api.streaming.sse import frame
from api.v1.artifacts.view import disposition
from controller.deployment import build_result
from crds.objects import Pod
from crewyard.sse import MessageTooLong, SSEReader
from runner.pid1.output.channel import parse_line
from runner.pid1.output.lines import LineSplitter
from runner.pid1.output.mask import SecretMask
from runner.pid1.output.sync_markers import MarkerSplitter
from tests.fuzz.eventstream import messages
from tests.fuzz.target import FuzzTarget, as_text, parts, words

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MASK = SecretMask(["KEY"], {"KEY": "a-secret-value"})
_LIMIT = 60_000

__all__ = ["TARGETS", "ArtifactRow"]


def crew_channel(data: bytes) -> None:
    """A line on the event channel: an event, an end, or words about it, and never the secret."""
    found = parse_line(data, _LIMIT, MASK)
    assert found.error or found.final_report is not None or found.kind
    if found.kind:
        json.loads(found.data)
        assert len(found.data.encode()) <= _LIMIT


def crew_output(data: bytes) -> None:
    """Bytes of the crew, cut anywhere, give the same lines; none is lost."""
    at_once, piecewise = _lines([data]), _lines([data[i : i + 5] for i in range(0, len(data), 5)])
    assert at_once == piecewise


def _lines(chunks: list[bytes]) -> list[tuple[bytes, bool]]:
    lines, marks, found = LineSplitter(64), MarkerSplitter(), []
    for chunk in chunks:
        for piece, _ in marks.feed(chunk):
            found += lines.feed(piece)
    return found + lines.feed(marks.end()) + lines.end()


def runner_events(data: bytes) -> None:
    """What a pod posts as events becomes events that any reader of the stream gets back as they are."""
    try:
        sent = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(sent, dict):
        return
    try:
        items = event_validation.items_of(sent)
        found = [event_validation.parse_event("run-a", item, NOW, 65536) for item in items]
    except PodApiError as refusal:
        assert refusal.status == 400
        return
    for number, one in enumerate(found, 1):
        try:
            json.dumps(one.data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue  # a lone surrogate: the body's reader has refused it before
        stream_of(one.type, dict(one.data), number)


def stream_of(kind: str, data: dict[str, Any], number: int) -> None:
    """Read one frame with an independent reader and with the client."""
    raw = frame(kind, data, number)
    ((event, text, identifier),) = messages(raw.decode())
    assert (event, identifier) == (kind, str(number)) and json.loads(text) == json.loads(json.dumps(data))
    ((message),) = SSEReader().feed(raw)
    assert (message.type, message.data, message.id) == (event, text, identifier)


def client_stream(data: bytes) -> None:
    """The parsed stream does not depend on its chunks."""
    whole, pieces = SSEReader(), SSEReader()
    try:
        at_once = list(whole.feed(data))
        piecewise = [one for i in range(0, len(data), 3) for one in pieces.feed(data[i : i + 3])]
    except MessageTooLong:
        return
    assert at_once == piecewise
    assert whole.retry is None or whole.retry >= 0


def file_name(data: bytes) -> None:
    """A file's name in a download's header: one line of ASCII from which any name comes back."""
    name = data.decode("utf-8", "replace")
    header = disposition(name)
    assert header.isascii() and header.isprintable()
    plain, _, exact = header.partition("; filename*=UTF-8''")
    assert unquote(exact) == name.rsplit("/", 1)[-1]
    inner = plain.removeprefix('attachment; filename="').removesuffix('"')
    assert not set(inner) & set('"\\/%')


def last_words(data: bytes) -> None:
    """A build pod's termination messages, of which one was executed code's to write."""
    code, reason, message = parts(data, 3)
    ended = {"exitCode": len(code), "reason": as_text(reason), "message": as_text(message)}
    for name in ("assemble", "source", "kaniko", "install", "push"):
        status = {"name": name, "state": {"terminated": ended}}
        state = {"phase": "Failed", "containerStatuses": [status]}
        pod = Pod({"metadata": {"name": "x"}, "spec": {"initContainers": [{"name": name}]}, "status": state})
        for found in (
            build_result.of_assemble(pod, "registry/crews/demo"),
            build_result.of_dependencies(pod, "registry/crews/demo"),
        ):
            if isinstance(found, build_result.BuildFailure | build_result.BuildPodBroken):
                assert found.message and len(found.log) <= 16_384


def channel_seeds() -> list[bytes]:
    """Lines of each kind."""
    return words(
        '{"event": {"type": "log", "data": {"message": "a-secret-value"}}, "mark": "m", "in": "oe"}',
        '{"event": {"type": "tool.called", "data": {"input": {"a": ["a-secret-value", 1, null]}}}}',
        '{"result": {"a": 1}, "output_artifact": "output.json"}',
        '{"failure": {"reason": "CrewError", "message": "x", "exit": true}}',
        '{"event": {"type": "run.started", "data": {}}}',
        '{"event": {"type": "x", "data": {"a": NaN, "b": 1e999}}}',
        "[" * 300,
    )


def output_seeds() -> list[bytes]:
    """Lines with marks in them, whole and torn."""
    return [b"a\nb\0\x1ecrewyard:1\x1e\0c\r\nd\0\x1ecrewyard:", b"\xe2\x80\xa8" * 40, b"x" * 200 + b"\0\x1e"]


def event_seeds() -> list[bytes]:
    """What runners post."""
    nasty = "a\r\nb\0c\u2028d\n\nevent: run.completed\ndata: {}\n\n\u202e\x7f"
    events = [
        {
            "seq": 1,
            "type": "log",
            "time": "2026-11-21T10:00:00.000123Z",
            "data": {"message": nasty, "level": "info"},
        },
        {"seq": 2, "type": "x\n", "time": 5, "data": {"run_id": 1, nasty: nasty}},
        {"seq": 3, "type": "run.completed", "time": "now", "data": None},
        {"seq": 4, "type": "agent.started", "data": {"agent": {"a": [[[]]]}}},
    ]
    return words(
        json.dumps({"events": events}), json.dumps({"events": events}, ensure_ascii=False), '{"events": [1]}'
    )


def stream_seeds() -> list[bytes]:
    """Streams as servers send them."""
    return words(
        "id: 1\nevent: log\ndata: {}\n\n",
        ": keepalive\r\n\r\nretry: 2000\rdata:a\rdata: b\r\r",
        "data\n\nid\ndata: \u2028\n\nid: \0\nfield: x\n\n",
        "\ufeffdata: x\n\n",
        "retry: " + "9" * 4400 + "\n\n",
        "retry: " + "9" * 400 + "\n\n",
    )


def name_seeds() -> list[bytes]:
    """Names that mean something to a header, a shell, a file system or an eye."""
    return words(
        'a"b\\c%41.txt',
        "nested/re\r\nport",
        "..\\up",
        "\u202etxt.exe",
        "\u2028",
        "x" * 255,
        "CON",
        "é;a=b",
        "\0",
    )


def word_seeds() -> list[bytes]:
    """Termination messages of each container."""
    texts = [
        '{"outcome": "built", "image": "r@sha256:0", "plan": {}}',
        '{"outcome": "dependencies", "dependencies_key": "k", "dependencies_image": "i"}',
        '{"outcome": "failed", "reason": "ConfigInvalid", "message": "m", "hint": "h", "log": "l"}',
        '{"outcome": "trouble", "message": ["x"], "reason": 5}',
        "error building image: \x1b[31mfailed\x1b[0m: signal: killed no space left",
        "[" * 500,
    ]
    return [b"1\xffError\xff" + text.encode() for text in texts]


TARGETS = (
    FuzzTarget("crew-channel", ("runner",), crew_channel, channel_seeds, 4096),
    FuzzTarget("crew-output", ("runner",), crew_output, output_seeds, 1024),
    FuzzTarget("runner-events", ("api",), runner_events, event_seeds, 4096),
    FuzzTarget("client-stream", ("crewyard",), client_stream, stream_seeds, 8192),
    FuzzTarget("file-name", ("api.v1",), file_name, name_seeds, 512),
    FuzzTarget("last-words", ("controller.deployment", "plan"), last_words, word_seeds, 4096),
)
