"""Values of the project's variables never reach events, the pod's log or the failure message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runner.pid1.output.channel import parse_line
from runner.pid1.output.lines import LineSplitter
from runner.pid1.output.mask import MIN_SECRET_BYTES, REPLACEMENT, SecretMask

WORD = 'canary-"1234"\\56é'
KEY = "-----BEGIN KEY-----\nfirst-half-of-it\nsecond-half-of-it\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key is {WORD}.", "the key is ***."),
        (f"{WORD}{WORD}", "******"),
        (json.dumps({"key": WORD}), '{"key": "***"}'),
        (json.dumps({"key": WORD}, ensure_ascii=False), '{"key": "***"}'),
        ("  second-half-of-it", "  ***"),
        ("nothing of the kind", "nothing of the kind"),
        ("short 1234567", "short 1234567"),
        ("not hidden: /usr/bin/env", "not hidden: /usr/bin/env"),
    ],
)
def test_lines_and_texts_are_masked(text: str, expected: str) -> None:
    mask = SecretMask(
        ["WORD", "KEY", "SHORT", "ABSENT", ""],
        {"WORD": WORD, "KEY": KEY, "SHORT": "1234567", "PATH": "/usr/bin/env"},
    )
    assert mask.text(text) == expected
    assert mask.line(text.encode()).decode() == expected


def test_the_longer_of_two_values_is_masked_first() -> None:
    mask = SecretMask("AB", {"A": "password", "B": "password-and-more"})
    assert mask.text("password-and-more password") == "*** ***"


def test_bytes_that_are_not_utf_8_are_masked_too() -> None:
    value = b"canary-\xff\xfe".decode("utf-8", "surrogateescape")
    assert SecretMask(["V"], {"V": value}).line(b"a canary-\xff\xfe b") == b"a *** b"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"12345678": 1, "n": 12345678}, {"***": 1, "n": 12345678}),
        ({"a": [{"key 12345678": "12345678"}]}, {"a": [{"key ***": "***"}]}),
        (
            {"12345678": 1, "87654321": 2, "*** 2": 3, "***": 4},
            {"***": 1, "*** 2": 2, "*** 2 3": 3, "*** 4": 4},
        ),
        ({"prompt_tokens": 1, "required": ["required"]}, {"prompt_tokens": 1, "required": ["***"]}),
    ],
)
def test_keys_are_masked_and_stay_apart(data: dict[str, Any], expected: dict[str, Any]) -> None:
    secrets = ("12345678", "87654321", "prompt_tokens", "required")
    mask = SecretMask(secrets, dict(zip(secrets, secrets, strict=True)))
    assert mask.value(data) == expected
    message = parse_line(json.dumps({"event": {"type": "note", "data": data}}).encode(), 60_000, mask)
    assert json.loads(message.data) == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.just("12345678"),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        min_size=MIN_SECRET_BYTES,
        max_size=20,
    ),
)
def test_a_masked_event_stays_json(data: object, secret: str) -> None:
    mask = SecretMask(["S", "T"], {"S": secret, "T": "12345678"})
    line = json.dumps(
        {"event": {"type": "tool.called", "data": {"input": data, "key": secret, "n": 12345678}}}
    )
    message = parse_line(line.encode(), 60_000, mask)
    assert not message.error
    masked = json.loads(message.data)
    assert masked["n"] == 12345678
    assert (
        masked["key"] == (REPLACEMENT if len(secret.strip().encode()) >= MIN_SECRET_BYTES else secret)
        or REPLACEMENT in masked["key"]
    )


@pytest.mark.parametrize("body", ["raise ValueError(f'401 for {key}')", "sys.exit(key)"])
async def test_a_leaked_key_is_masked_everywhere(pod: Any, api: Any, body: str) -> None:
    canary = "sk-canary-0123456789"
    pod.environ = {"OPENAI_API_KEY": canary, "REGION": "eu", "MODEL": "a-plain-word-of-the-image"}
    pod.crew(
        f"""
        import logging, os, sys
        from crewyard_runtime import emit
        def kickoff():
            key = os.environ["OPENAI_API_KEY"]
            print("key", key, "in", os.environ["REGION"], os.environ["MODEL"])
            print(dict(os.environ), file=sys.stderr)
            logging.getLogger("crew").warning("with %s", key)
            emit("tool.called", tool="curl", input={{"headers": ["Bearer " + key], key: 1}}, **{{key: 1}})
            {body}
        """
    )
    ended = await pod.run(SECRETS="OPENAI_API_KEY,REGION")
    assert api.result["reason"] == "CrewError"
    assert "***" in api.result["message"] and "***" in ended.termination["message"]
    assert "key *** in eu a-plain-word-of-the-image" in api.logs()
    reported = json.dumps([api.events, api.result, ended.termination, ended.stderr, ended.stdout.decode()])
    assert canary not in reported


async def test_the_result_is_not_masked(pod: Any, api: Any) -> None:
    pod.environ = {"OPENAI_API_KEY": "sk-canary-0123456789"}
    pod.crew("import os\ndef kickoff():\n    return os.environ['OPENAI_API_KEY']")
    await pod.run(SECRETS="OPENAI_API_KEY")
    assert api.result["output"] == "sk-canary-0123456789"


@given(st.integers(0, 300), st.integers(1, 70), st.sampled_from([64, 100]))
@example(55, 70, 64)
def test_a_secret_at_the_cut_of_a_long_line_is_masked(before: int, chunk: int, longest: int) -> None:
    mask = SecretMask(["A", "B"], {"A": "canary-of-a", "B": "canary-of-bird"})
    line = b"x" * before + b"canary-of-a" + b"canar" + b"canary-of-bird" + b"y" * 90
    lines = LineSplitter(longest, mask.cut_at)
    parts = [line[start : start + chunk] for start in range(0, len(line), chunk)]
    pieces = [piece for part in parts for piece, _ in lines.feed(part)]
    pieces += [piece for piece, _ in lines.end()]
    assert b"".join(pieces) == line
    assert b"".join(map(mask.line, pieces)) == b"x" * before + b"***canar***" + b"y" * 90


def test_a_secret_longer_than_a_piece_does_not_make_small_pieces() -> None:
    mask = SecretMask(["A", "B"], {"A": "a" * 500, "B": "aaaaaaaa"})
    pieces = [piece for piece, _ in LineSplitter(64, mask.cut_at).feed(b"a" * 300 + b"\n")]
    assert b"".join(pieces) == b"a" * 300
    assert all(len(piece) >= 32 for piece in pieces[:-1])
