"""The campaign's ledger keeps every acknowledged line over restarts and a torn line."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.campaign.ledger import Ledger, read, starts


@pytest.fixture
def ledger(tmp_path):
    new_ledger = Ledger(tmp_path / "ledger.jsonl", "127.0.0.1")
    new_ledger.start()
    yield new_ledger
    new_ledger.stop()


def put(ledger, **fields):
    address = urlsplit(ledger.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    connection.request("PUT", "/", json.dumps({"what": "mark", "number": 0, "token": "t", **fields}))
    status = connection.getresponse().status
    connection.close()
    return status


def test_concurrent_lines_are_stored_in_order(ledger):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: put(ledger, run=f"run-{n}"), range(50)))
    assert answers == [200] * 50
    entries = ledger.entries()
    assert {entry.run for entry in entries} == {f"run-{n}" for n in range(50)}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)


def test_it_continues_after_a_restart(ledger):
    url = ledger.url
    put(ledger, run="run-a", what="start")
    ledger.stop()
    with pytest.raises(OSError):
        put(ledger, run="run-a")
    ledger.start()
    assert ledger.url == url
    put(ledger, run="run-a", what="start", token="t2")
    assert [entry.token for entry in starts(read(ledger.path))["run-a"]] == ["t", "t2"]


def test_a_torn_line_damages_no_other(ledger):
    put(ledger, run="run-a")
    ledger.stop()
    with ledger.path.open("ab") as file:
        file.write(b'{"run": "run-b", "tok')
    ledger.start()
    put(ledger, run="run-c")
    assert [entry.run for entry in read(ledger.path)] == ["run-a", "run-c"]


def test_a_too_long_line_is_refused(ledger):
    assert put(ledger, run="x" * 100_000) == 413
    assert ledger.entries() == []
