"""The values of the project's variables do not reach events, the pod's log or the failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pid1.output.channel import understand
from runner.pid1.output.mask import HIDDEN, LEAST, Mask

WORD = 'canary-"1234"\\56é'
KEY = "-----BEGIN KEY-----\nfirst-half-of-it\nsecond-half-of-it\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("said", "shown"),
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
def test_lines_and_texts_lose_the_values(said: str, shown: str) -> None:
    mask = Mask(
        ["WORD", "KEY", "SHORT", "ABSENT", ""],
        {"WORD": WORD, "KEY": KEY, "SHORT": "1234567", "PATH": "/usr/bin/env"},
    )
    assert mask.text(said) == shown
    assert mask.line(said.encode()).decode() == shown


def test_the_longer_of_two_values_goes_first() -> None:
    mask = Mask("AB", {"A": "password", "B": "password-and-more"})
    assert mask.text("password-and-more password") == "*** ***"


def test_bytes_that_are_no_text_are_hidden_too() -> None:
    value = b"canary-\xff\xfe".decode("utf-8", "surrogateescape")
    assert Mask(["V"], {"V": value}).line(b"a canary-\xff\xfe b") == b"a *** b"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.just("12345678"),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=LEAST, max_size=20),
)
def test_an_event_stays_json_whatever_the_value_is(data: object, secret: str) -> None:
    mask = Mask(["S", "T"], {"S": secret, "T": "12345678"})
    line = json.dumps(
        {"event": {"type": "tool.called", "data": {"input": data, "key": secret, "n": 12345678}}}
    )
    said = understand(line.encode(), 60_000, mask)
    assert not said.trouble
    shown = json.loads(said.data)
    assert shown["n"] == 12345678
    assert (
        shown["key"] == (HIDDEN if len(secret.strip().encode()) >= LEAST else secret)
        or HIDDEN in shown["key"]
    )


@pytest.mark.parametrize("body", ["raise ValueError(f'401 for {key}')", "sys.exit(key)"])
async def test_a_crew_that_tells_its_key_tells_it_nobody(pod: Any, facade: Any, body: str) -> None:
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
            emit("tool.called", tool="curl", input={{"headers": ["Bearer " + key]}})
            {body}
        """
    )
    ended = await pod.run(SECRETS="OPENAI_API_KEY,REGION")
    assert facade.result["reason"] == "CrewError"
    assert "***" in facade.result["message"] and "***" in ended.termination["message"]
    assert "key *** in eu a-plain-word-of-the-image" in facade.logs()
    seen = json.dumps([facade.events, facade.result, ended.termination, ended.stderr, ended.stdout.decode()])
    assert canary not in seen


async def test_what_it_returns_is_its_own(pod: Any, facade: Any) -> None:
    pod.environ = {"OPENAI_API_KEY": "sk-canary-0123456789"}
    pod.crew("import os\ndef kickoff():\n    return os.environ['OPENAI_API_KEY']")
    await pod.run(SECRETS="OPENAI_API_KEY")
    assert facade.result["output"] == "sk-canary-0123456789"
