"""The bound of a build log: what is beyond it is acknowledged and dropped, and no other build notices."""

from pathlib import Path

import pytest

from api.store.logs import build_logs
from api.store.logs.build_logs import DROPPED, Chunk
from api.store.store import Store


async def test_log_at_its_limit_drops_the_rest_while_another_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_logs, "MAX_RECORDS", 3)
    store = await Store.open(tmp_path, "crews")
    logs = store.build_logs
    greedy = [Chunk(number, f"{number}\n") for number in range(1, 6)]
    # Acknowledged as a whole: the pod would send what is not acknowledged again.
    assert await logs.append("dep-greedy", "pod", "assemble", greedy) == 5
    assert await logs.append("dep-greedy", "pod", "assemble", [Chunk(6, "6\n")]) == 6
    assert (await logs.read("dep-greedy")).text == f"1\n2\n{DROPPED}"
    assert await logs.append("dep-modest", "pod", "assemble", [Chunk(1, "a\n"), Chunk(2, "b\n")]) == 2
    assert (await logs.read("dep-modest")).text == "a\nb\n"
    await store.close()
