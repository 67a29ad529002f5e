"""Trace contexts: what is valid, and ids that follow from a uid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.runs import trace_context
from crds.runs.trace_context import TraceContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (VALID, TraceContext(TRACE, SPAN, 1)),
        (f"00-{TRACE}-{SPAN}-00", TraceContext(TRACE, SPAN, 0)),
        (f"00-{TRACE}-{SPAN}-ff", TraceContext(TRACE, SPAN, 3)),
        # A later version may have more fields.
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-holds", TraceContext(TRACE, SPAN, 1)),
        (f"cc-{TRACE}-{SPAN}-01.more", None),
        (f"{VALID}-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (VALID.upper(), None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        (f" {VALID}", None),
        (f"{VALID}\n", None),
        (f"00-{TRACE}-{SPAN}-1", None),
        ("", None),
        (None, None),
    ],
)
def test_only_valid_contexts_are_taken(text, expected):
    assert trace_context.parse(text) == expected


@given(st.text(max_size=80))
def test_any_text_is_a_context_or_none(text):
    found = trace_context.parse(text)
    assert found is None or trace_context.parse(found.text) == found


def test_ids_are_those_of_the_uid_and_never_change():
    assert trace_context.trace_id(None, "uid-1") == trace_context.trace_id("wrong", "uid-1")
    assert trace_context.trace_id(None, "uid-1") == "74e5ce1a182a8fbb26d06449ccdac1ed"
    assert trace_context.span_id("uid-1", "run") == "d02ece09c99156d2"
    assert trace_context.trace_id(VALID, "uid-1") == TRACE
    parts = ("run", "crew", "event 7")
    assert len({trace_context.span_id(uid, part) for uid in ("uid-1", "uid-2") for part in parts}) == 6


@pytest.mark.parametrize(
    ("parent", "exported", "expected"),
    [
        (None, False, None),
        (None, True, f"00-{trace_context.trace_id(None, 'u')}-{trace_context.span_id('u', 'crew')}-01"),
        (VALID, True, f"00-{TRACE}-{trace_context.span_id('u', 'crew')}-01"),
        (VALID, False, VALID),
        # What the caller does not record is not exported: its span is the parent.
        (f"00-{TRACE}-{SPAN}-00", True, f"00-{TRACE}-{SPAN}-00"),
        ("wrong", False, None),
    ],
)
def test_the_crew_gets_a_parent_that_exists(parent, exported, expected):
    assert trace_context.crew_context(parent, "u", exported) == expected
