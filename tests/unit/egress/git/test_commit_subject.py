"""The subject of a commit."""

from types import SimpleNamespace

import pytest

from egress.git.commit_subject import subject, subject_of


def test_subject_is_one_printable_line():
    assert subject("\n\nFix\x1b[31m it\u2028\nbody") == "Fix [31m it"
    assert len(subject("x" * 5000)) == 500
    assert subject("") == ""


@pytest.mark.parametrize(
    ("raw", "encoding", "expected"),
    [
        (b"Gr\xfc\xdfe\n", "ISO-8859-1", "Grüße"),
        ("Grüße".encode(), None, "Grüße"),
        (b"a\xff", "no-encoding", "a\ufffd"),
    ],
)
def test_a_subject_is_read_in_the_encoding_of_the_commit(raw, encoding, expected):
    assert subject_of(SimpleNamespace(raw_message=raw, message_encoding=encoding)) == expected
