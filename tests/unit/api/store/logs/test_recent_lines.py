"""Tests of recent records: equal to those on disk, or not in memory."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.store.logs.journal import RECENT_MAX_BYTES, Journal, encode_record


@settings(max_examples=40, deadline=None)
@given(appends=st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=4), max_size=6))
def test_recent_matches_disk(tmp_path_factory: pytest.TempPathFactory, appends: list[list[int]]) -> None:
    journal, number = Journal(tmp_path_factory.mktemp("journal"), segment_bytes=5000), 0
    assert journal.recent(0, 10) is None
    for sizes in appends:
        lines = [encode_record({"n": number + offset, "x": "x" * size}) for offset, size in enumerate(sizes)]
        number = journal.append(lines)
        small = sum(sizes) < RECENT_MAX_BYTES - 40 * len(sizes)
        for after in range(number + 1):
            for limit in (1, 2, 9):
                recent = journal.recent(after, limit)
                on_disk = [line.rstrip(b"\n") for line in journal.lines(after, limit)]
                assert recent is None or list(recent) == on_disk
                assert (recent is not None) >= (small and number - len(sizes) <= after < number)


def test_removed_journal_has_no_recent_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a" / "b" / "c")
    journal.append([b'{"n":1}'])
    assert journal.recent(0, 1) == (b'{"n":1}',)
    journal.remove()
    assert journal.recent(0, 1) is None
