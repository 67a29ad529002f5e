"""API keys: form, checksum, hash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds import api_keys


def test_generated_key_has_its_id_and_matches_only_its_hash():
    first, second = api_keys.generate(), api_keys.generate()
    assert first.text.startswith("crw_")
    assert api_keys.key_id_of(first.text) == first.key_id
    assert api_keys.matches(first.text, first.hash)
    assert not api_keys.matches(second.text, first.hash)
    assert first.text not in first.hash


@given(position=st.integers(4, 53), letter=st.sampled_from("0aZ_é"))
def test_one_wrong_letter_is_detected(position, letter):
    text = api_keys.generate().text
    wrong = text[:position] + letter + text[position + 1 :]
    assert wrong == text or api_keys.key_id_of(wrong) is None


@pytest.mark.parametrize("text", ["", "crw_", "crw_x_y", "Bearer crw_", "sk-123", "crw_" + "a" * 60])
def test_malformed_key_has_no_id(text):
    assert api_keys.key_id_of(text) is None
