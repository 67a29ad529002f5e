"""A final status is valid for any text of a crew or a build; the schema is the CRDs' own."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.runtime.fallback_status import minimal_status, printable, reason_word
from crds import kinds
from crds.schema import openapi, validator

TEXT = st.text(max_size=2000).map(lambda text: text * 4)


@settings(deadline=None)
@given(TEXT, TEXT, st.integers() | st.text(max_size=5), st.sampled_from([kinds.RUN, kinds.DEPLOYMENT]))
def test_fallback_status_is_always_valid(reason, message, duration, kind):
    condition = {
        "type": "Stalled",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    }
    rejected = {
        "phase": "Failed",
        "conditions": [condition],
        "error": {"reason": reason, "message": message, "log": message * 9},
        "durationMs": duration,
        "completionTime": "2026-11-21T10:00:00.000Z",
        "startTime": message,
        "plan": {"framework": message},
    }
    schema = openapi(kind)["properties"]["status"]
    least = minimal_status(rejected)
    assert list(validator(kind).evolve(schema=schema).iter_errors(least)) == []
    assert least["phase"] == "Failed" and least["completionTime"]


def test_only_terminal_status_has_a_fallback():
    assert minimal_status({"phase": "Building", "conditions": []}) is None
    assert minimal_status({}) is None


def test_invalid_words_and_texts_are_replaced():
    assert reason_word("No Such Word!") == "NoSuchWord"
    assert reason_word("77") == "Reason77"
    assert reason_word(None) == "Reason"
    assert printable("a\x00b\nc") == "a b c"
