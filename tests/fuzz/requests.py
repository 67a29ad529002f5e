"""What callers of the API send: bodies, headers, keys, tokens, deliveries of git hosts."""

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

from api import errors
from api.auth.unverified import parse_unverified
from api.http import negotiation, ranges, request_body, validation
from api.streaming.sse import last_event_id
from api.v1 import idempotency
from api.v1.endpoints import ENDPOINTS
from api.webhooks import delivery, signature
from crds import api_keys, durations, pod_tokens, times
from tests.fuzz.target import FuzzTarget, as_text, parts, words

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECRET, DIGEST = "the-secret-of-a-webhook", "0" * 64
_CHECKERS = [validation.validator(endpoint.body) for endpoint in ENDPOINTS if endpoint.body is not None]


def json_body(data: bytes) -> None:
    """What is taken is JSON that can be stored; each schema finds it fitting or says what is wrong."""
    try:
        value = request_body.parse(data)
    except errors.HttpApiError as error:
        assert error.status == 400
        json.dumps(error.body()).encode()
        return
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    for checker in _CHECKERS:
        try:
            validation.check(checker, value)
        except errors.HttpApiError as error:
            assert error.status == 400 and error.message
            json.dumps(error.body()).encode()


def headers(data: bytes) -> None:
    """Each header that is read, as aiohttp gives it."""
    text = as_text(data)
    assert last_event_id(text) >= 0
    ranges.etag_matches(text, '"0"')
    for offered in (["application/json"], ["text/event-stream", "application/json"], ["*/*"]):
        try:
            assert negotiation.choose(text, offered) in offered
        except errors.HttpApiError as error:
            assert error.status == 406
    try:
        span = ranges.parse_range(text, 1000)
        assert span is None or 0 <= span.start < span.end <= 1000
    except ranges.RangeNotSatisfiable:
        pass
    try:
        idempotency.parse_header(text, "key", "POST /v1/runs", {"a": 1})
    except errors.HttpApiError as error:
        assert error.status == 400


def credentials(data: bytes) -> None:
    """No text is a valid key or token but those that this test made."""
    text = as_text(data)
    identifier = api_keys.key_id_of(text)
    assert identifier is None or identifier in text
    found = parse_unverified(text)
    if found is not None:
        found.expired(NOW)
    try:
        pod_tokens.verify(("k" * 32,), text, NOW.timestamp())
    except pod_tokens.TokenInvalid:
        return
    assert text in (seed.decode() for seed in credential_seeds())


def moments(data: bytes) -> None:
    """Times and durations."""
    text = as_text(data)
    with contextlib.suppress(ValueError):
        assert times.parse_time(text).tzinfo is not None
    with contextlib.suppress(ValueError):
        assert durations.seconds(text) > 0


def hook(data: bytes) -> None:
    """A delivery: nothing but the secret proves it, and what it says is read without trust."""
    head, content = parts(data, 2)
    lines = [line.partition(":") for line in as_text(head).split("\n")[:8]]
    shown = {name.strip().title().replace("Github", "GitHub"): value.strip() for name, _, value in lines}
    proof = signature.parse_proof(shown)
    if signature.verify(proof, SECRET, DIGEST):
        assert DIGEST.encode() in head or SECRET.encode() in head
    assert not signature.verify(proof, "", DIGEST)
    delivery.identifiers(shown)
    for kind in (delivery.JSON, delivery.FORM):
        payload: Any = None
        with contextlib.suppress(ValueError):
            payload = delivery.parse_payload(content, kind)
        found = delivery.parse_delivery(shown, payload)
        assert found.number is None or found.number > 0
        json.dumps([found.ref, found.repository, found.default_branch, found.event])


def body_seeds() -> list[bytes]:
    """Bodies of each call."""
    project = {
        "name": "demo",
        "plan": "pro",
        "source": {"git": {"url": "https://h/x", "ref": {"branch": "m"}}},
    }
    return words(
        json.dumps(project),
        '{"deployment": "demo", "input": {"topic": "tides", "n": [1, 2.5, null, true]}, "timeout": "1h"}',
        '{"project": "demo", "build_context_url": "https://h/x", "message": "m", "git_sha": "0123456"}',
        '{"name": "CI", "scopes": ["deploy"], "projects": ["demo"], "expires_at": "2027-11-21T00:00:00Z"}',
        '{"variables": {"A_KEY": "x"}}',
        '{"project": "demo", "size": 10, "sha256": "00"}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "[" * 100 + "]" * 100,
        "1" * 5000,
        '{"a": ' + "9" * 4400 + "}",
    )


def header_seeds() -> list[bytes]:
    """Headers of each kind."""
    return words(
        "bytes=0-499",
        "bytes=-5",
        "bytes=5-",
        "text/event-stream;q=0.5, */*;q=nan",
        'W/"0", "1"',
        "42",
        "*",
        "a-key-1",
    )


def credential_seeds() -> list[bytes]:
    """A key, an own token and a foreign one."""
    ours = pod_tokens.mint("k" * 32, "run", "crews", "run-a", "uid", 2_000_000_000)
    jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJhdWQiOlsiYSJdLCJleHAiOjF9." + "A" * 43
    return words("crw_0123456789_abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMN", ours, jwt)


def moment_seeds() -> list[bytes]:
    """Moments and durations of each form."""
    return words(
        "2026-11-21T10:00:00.000123Z",
        "2026-11-21T10:00:00+05:30",
        "1h30m",
        "90s",
        "9999999h",
        "0001-01-01T00:00:00+23:59",
    )


def hook_seeds() -> list[bytes]:
    """Deliveries of each host."""
    push = '{"ref": "refs/heads/m", "after": "0", "repository": {"full_name": "o/t", "default_branch": "m"}}'
    pull = '{"action": "closed", "number": 7, "repository": {"full_name": "o/t"}}'
    lab = '{"object_attributes": {"iid": 7, "action": "merge"}, "project": {"path_with_namespace": "o/t"}}'
    heads = (
        f"X-GitHub-Event: push\nX-GitHub-Delivery: 1\nX-Hub-Signature-256: sha256={'0' * 63}1",
        "X-Gitea-Event: create\nX-Gitea-Signature: 00",
        f"X-Gitlab-Event: Merge Request Hook\nX-Gitlab-Token: {SECRET[:-1]}",
        "X-GitHub-Event: pull_request",
    )
    bodies = (
        push,
        pull,
        lab,
        "payload=%7B%22ref%22%3A%22x%22%7D",
        "[" * 500,
        '{"number": ' + "9" * 4400 + "}",
    )
    return [head.encode() + b"\xff" + text.encode() for head in heads for text in bodies]


TARGETS = (
    FuzzTarget("body", ("api",), json_body, body_seeds, 8192),
    FuzzTarget("header", ("api",), headers, header_seeds, 256),
    FuzzTarget("credential", ("api.auth", "crds"), credentials, credential_seeds, 512),
    FuzzTarget("moment", ("crds",), moments, moment_seeds, 64),
    FuzzTarget("hook", ("api.webhooks",), hook, hook_seeds, 8192),
)
