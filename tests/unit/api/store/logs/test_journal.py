"""Tests of the journal: acknowledged records survive a crash, in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.store.logs.journal import INDEX_STRIDE, Journal, Record, encode_record

records = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=3), max_size=30)


def append(journal: Journal, records: Sequence[Record]) -> int:
    """Append records and return the last number."""
    return journal.append([encode_record(record) for record in records])


@settings(deadline=None)
@given(batches=st.lists(records, max_size=8), segment=st.integers(1, 400), data=st.data())
def test_read_from_every_position(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[dict[str, str]]],
    segment: int,
    data: st.DataObject,
) -> None:
    directory = tmp_path_factory.mktemp("journal") / "run"
    journal = Journal(directory, segment)
    whole: list[dict[str, str]] = []
    for batch in batches:
        whole += batch
        assert append(journal, batch) == len(whole)
        if data.draw(st.booleans()):
            journal = Journal(directory, segment)
    after = data.draw(st.integers(0, len(whole) + 1))
    limit = data.draw(st.integers(0, 40))
    assert journal.read(after, limit) == whole[after : after + limit]
    assert Journal(directory, segment).read(0, 10**6) == whole


def test_positions_across_strides_and_segments(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run", segment_bytes=4000)
    for start in range(0, 3 * INDEX_STRIDE, 100):
        append(journal, [{"n": number} for number in range(start, start + 100)])
    reopened = Journal(tmp_path / "run", segment_bytes=4000)
    assert len(list((tmp_path / "run").glob("*.log"))) > 1
    for after in range(0, 3 * INDEX_STRIDE, 37):
        assert [record["n"] for record in reopened.read(after, 5)] == list(range(after, after + 5))


@pytest.mark.parametrize("torn", [b'{"n": 3', b'{"n": 3}', b"\0\0\0\0\n", b"\n", b"[1]\n"])
def test_a_torn_end_is_cut(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path / "run")
    append(journal, [{"n": 1}, {"n": 2}])
    file = next((tmp_path / "run").glob("*.log"))
    with file.open("ab") as end:
        end.write(torn)
    reopened = Journal(tmp_path / "run")
    assert append(reopened, [{"n": 3}]) == 3
    assert Journal(tmp_path / "run").read(0, 10) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "run")
    append(journal, [{"n": 1}])

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            append(journal, [{"n": 2}])
        with pytest.raises(OSError, match="No space"):
            append(Journal(tmp_path / "other"), [{"n": 1}])
    assert append(journal, [{"n": 3}]) == 2
    assert Journal(tmp_path / "run").read(0, 10) == [{"n": 1}, {"n": 3}]
    assert Journal(tmp_path / "other").last == 0


WRITER = """
import sys
from pathlib import Path
from api.store.logs.journal import Journal, encode_record
journal = Journal(Path(sys.argv[1]), segment_bytes=20000)
number = journal.last
while True:
    journal.append([encode_record({"n": number + step, "x": "y" * 300}) for step in range(1, 8)])
    number += 7
    print(number, flush=True)
"""


def test_killed_writer_keeps_acknowledged_records(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.2)
            os.kill(writer.pid, signal.SIGKILL)
            output = writer.stdout.read().split()
        acknowledged = int(output[-1]) if output else acknowledged
        journal = Journal(tmp_path / "run")
        numbers: list[int] = []
        while batch := journal.read(len(numbers), 10_000):
            numbers += [record["n"] for record in batch]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= acknowledged


def test_read_during_removal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run", segment_bytes=50)
    for number in range(20):
        append(journal, [{"n": number}])
    opened = journal._positions

    def removed(first: int) -> list[int]:
        found = opened(first)
        journal.remove()
        return found

    journal._positions = removed  # type: ignore[method-assign]
    with pytest.raises(FileNotFoundError):
        journal.read(0, 20)
