"""Timeouts of the API server, raised for tests that check responses and not latency.

On a busy machine a commit takes seconds, and a statement longer than the product allows. `conftest.py` of the
unit tests, of the tests with a kube-apiserver and of the browser tests call this. `python -m` this module is
`python -m api` with the raised timeouts, for tests that start the API server as a process.
"""

import pytest

from api import __main__ as server
from api import health
from api.auth import kubernetes
from api.internal import claim
from api.store.index import projects
from api.store.logs import open_journals
from api.store.sql import sqlite, sqlite_driver
from api.store.sql.postgres import database, engine, leader, notifications

PATIENT_SECONDS = 60.0
_CONSTANTS = (
    (health, "READY_TIMEOUT_SECONDS"),
    (kubernetes, "REVIEW_TIMEOUT_SECONDS"),
    (claim, "LIVE_READ_TIMEOUT_SECONDS"),
    (projects, "REMOVAL_WAIT_SECONDS"),
    (open_journals, "LOCK_TIMEOUT_SECONDS"),
    (sqlite, "CONNECTION_TIMEOUT_SECONDS"),
    (sqlite_driver, "LOCK_TIMEOUT_SECONDS"),
    (database, "TRANSACTION_TIMEOUT_SECONDS"),
    (database, "COMMIT_CHECK_SECONDS"),
    (engine, "CONNECT_SECONDS"),
    (engine, "COMMAND_TIMEOUT_SECONDS"),
    (engine, "POOL_SECONDS"),
    (leader, "CONNECT_SECONDS"),
    (notifications, "CONNECT_SECONDS"),
)
_SERVER_SETTINGS = (
    (engine._TIMEOUT_SETTINGS, "statement_timeout"),
    (engine._TIMEOUT_SETTINGS, "lock_timeout"),
    (engine._TIMEOUT_SETTINGS, "idle_in_transaction_session_timeout"),
    (leader._SESSION_SETTINGS, "idle_session_timeout"),
)


def raise_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeouts of both databases, of journals, reviews and live reads, and of readiness."""
    for module, name in _CONSTANTS:
        monkeypatch.setattr(module, name, PATIENT_SECONDS)
    for settings, name in _SERVER_SETTINGS:
        monkeypatch.setitem(settings, name, str(int(1000 * PATIENT_SECONDS)))


if __name__ == "__main__":
    raise_timeouts(pytest.MonkeyPatch())
    server.main()
