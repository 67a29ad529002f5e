"""Run, build and upload tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds import pod_tokens

KEY = "0" * 64


def test_verify_returns_the_claims():
    text = pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100)
    assert pod_tokens.verify(KEY, text, 99.9) == pod_tokens.PodToken("run", "crews", "run-1", "uid-1", 100)


@pytest.mark.parametrize(
    ("key", "now", "why"), [(KEY, 100, "expired"), ("1" * 64, 0, "signature"), ("", 0, "malformed")]
)
def test_expired_or_foreign_token_is_invalid(key, now, why):
    text = pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100)
    with pytest.raises(pod_tokens.TokenInvalid, match=why):
        pod_tokens.verify(key, text, now)


@given(st.text(max_size=200))
def test_any_text_is_invalid(text):
    with pytest.raises(pod_tokens.TokenInvalid):
        pod_tokens.verify(KEY, text, 0)


@given(st.data())
def test_changed_letter_is_invalid(data):
    text = pod_tokens.mint(KEY, "build", "crews", "dep-1", "uid-1", 100)
    position = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("Aa0-_"))
    changed = text[:position] + letter + text[position + 1 :]
    if changed != text:
        with pytest.raises(pod_tokens.TokenInvalid):
            pod_tokens.verify(KEY, changed, 0)


@pytest.mark.parametrize("more", ["\n", "=", "==", " ", "\0"])
def test_a_token_has_one_spelling(more):
    text = pod_tokens.mint(KEY, "build", "crews", "dep-1", "uid-1", 100)
    for changed in (text + more, text.replace(".", "." + more)):
        with pytest.raises(pod_tokens.TokenInvalid):
            pod_tokens.verify(KEY, changed, 0)


def test_an_empty_key_signs_nothing():
    with pytest.raises(ValueError, match="CREWYARD_TOKEN_KEY"):
        pod_tokens.mint("", "run", "crews", "run-1", "uid-1", 100)
