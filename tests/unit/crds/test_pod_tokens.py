"""Run, build and upload tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds import pod_tokens
from crds.pod_tokens import MAX_TOKEN_LENGTH

KEY = "0" * 64


def test_verify_returns_the_claims():
    text = pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100)
    assert pod_tokens.verify((KEY,), text, 99.9) == pod_tokens.PodToken("run", "crews", "run-1", "uid-1", 100)


def test_token_text_is_fixed():
    """Another spelling would refuse the tokens of pods that an earlier release started."""
    body = "WyJydW4iLCJjcmV3cyIsInJ1bi0xIiwidWlkLTEiLDEwMF0"
    text = f"{body}.WmIH3XuT0YN6hwrK3Lyp7lkjvc7Pd9sGmDzFKJWidJM"
    assert pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100) == text


@pytest.mark.parametrize("name", ["r", "ru", "run", "run-"])
def test_claims_of_every_length_come_back(name):
    text = pod_tokens.mint(KEY, "upload", "crews", name, "uid-1", 100)
    assert "=" not in text
    assert pod_tokens.verify((KEY,), text, 0) == pod_tokens.PodToken("upload", "crews", name, "uid-1", 100)


def test_longest_token():
    texts = [pod_tokens.mint(KEY, "run", "crews", "run-1", "u" * count, 100) for count in range(1460, 1500)]
    lengths = {len(text): text for text in texts}
    assert min(lengths) < MAX_TOKEN_LENGTH < max(lengths)
    longest = max(length for length in lengths if length <= MAX_TOKEN_LENGTH)
    assert longest == MAX_TOKEN_LENGTH
    assert pod_tokens.verify((KEY,), lengths[longest], 0).name == "run-1"
    with pytest.raises(pod_tokens.TokenInvalid, match="malformed"):
        pod_tokens.verify((KEY,), lengths[min(length for length in lengths if length > longest)], 0)


@pytest.mark.parametrize("text", ["", "a", "é.é", "a.\u0130"])
def test_text_of_another_form_is_malformed(text):
    with pytest.raises(pod_tokens.TokenInvalid, match="malformed"):
        pod_tokens.verify((KEY,), text, 0)


def test_two_dots_are_no_token():
    body, signature = pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100).split(".")
    with pytest.raises(pod_tokens.TokenInvalid, match="signature"):
        pod_tokens.verify((KEY,), f"{body}.{body}.{signature}", 0)


@pytest.mark.parametrize(
    ("key", "now", "why"), [(KEY, 100, "expired"), ("1" * 64, 0, "signature"), ("", 0, "malformed")]
)
def test_expired_or_foreign_token_is_invalid(key, now, why):
    text = pod_tokens.mint(KEY, "run", "crews", "run-1", "uid-1", 100)
    with pytest.raises(pod_tokens.TokenInvalid, match=why):
        pod_tokens.verify((key,), text, now)


@given(st.text(max_size=200))
def test_any_text_is_invalid(text):
    with pytest.raises(pod_tokens.TokenInvalid):
        pod_tokens.verify((KEY,), text, 0)


@given(st.data())
def test_changed_letter_is_invalid(data):
    text = pod_tokens.mint(KEY, "build", "crews", "dep-1", "uid-1", 100)
    position = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("Aa0-_"))
    changed = text[:position] + letter + text[position + 1 :]
    if changed != text:
        with pytest.raises(pod_tokens.TokenInvalid):
            pod_tokens.verify((KEY,), changed, 0)


@pytest.mark.parametrize("more", ["\n", "=", "==", " ", "\0"])
def test_a_token_has_one_spelling(more):
    text = pod_tokens.mint(KEY, "build", "crews", "dep-1", "uid-1", 100)
    for changed in (text + more, text.replace(".", "." + more)):
        with pytest.raises(pod_tokens.TokenInvalid):
            pod_tokens.verify((KEY,), changed, 0)


def test_a_token_of_each_key_is_valid_while_keys_are_changed():
    old, new = "0" * 64, "1" * 64
    text = pod_tokens.mint(old, "run", "crews", "run-1", "uid-1", 100)
    for keys in ((new, old), (old, new)):
        assert pod_tokens.verify(keys, text, 0).name == "run-1"
    with pytest.raises(pod_tokens.TokenInvalid, match="signature"):
        pod_tokens.verify((new,), text, 0)
    for keys in ((new, ""), ("", old)):
        with pytest.raises(pod_tokens.TokenInvalid, match="malformed"):
            pod_tokens.verify(keys, text, 0)


def test_other_keys_are_separated_by_white_space():
    assert pod_tokens.parse_other_keys("") == ()
    keys = ("a" * 16, "b" * 16, "c" * 16)
    assert pod_tokens.parse_other_keys(f" {keys[0]}\n{keys[1]}  {keys[2]} ") == keys
    with pytest.raises(ValueError, match="at least 16"):
        pod_tokens.parse_other_keys(f"{'a' * 16} short")
    with pytest.raises(ValueError, match="at most 3"):
        pod_tokens.parse_other_keys(" ".join(["a" * 16] * 4))


def test_an_empty_key_signs_nothing():
    with pytest.raises(ValueError, match="CREWYARD_TOKEN_KEY"):
        pod_tokens.mint("", "run", "crews", "run-1", "uid-1", 100)
