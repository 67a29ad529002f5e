"""Tests of `python -m api key` in the pod of the running service."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.store.store import Store
from crds import api_keys

ROOT = Path(__file__).parents[4]


def call(data, database_url, *arguments):
    environment = {
        **os.environ,
        "CREWYARD_DATA": str(data),
        "CREWYARD_DATABASE_URL": database_url or "",
        "CREWYARD_TOKEN_KEY": "0123456789abcdef",
        "CREWYARD_NAMESPACE": "crews",
    }
    return api(environment, "key", *arguments)


def api(environment, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "api", *arguments],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


async def test_running_service_accepts_new_keys(store, tmp_path, database_url):
    """Slow: two processes that import the API server."""
    texts = []
    for name in ((), ("the second",)):
        done = call(tmp_path / "data", database_url, *name)
        assert done.returncode == 0, done.stderr
        (text,) = done.stdout.splitlines()
        assert text not in done.stderr
        row = await store.keys.get(api_keys.key_id_of(text))
        assert api_keys.matches(text, row.hash) and text not in repr(row)
        assert (row.scopes, row.projects, row.plan) == ({"admin"}, None, "enterprise")
        texts.append(text)
    assert texts[0] != texts[1]
    assert {row.name for row in await store.keys.all()} == {"first admin key", "the second"}


@pytest.mark.parametrize("arguments", [("--help",), ("",), ("a", "b"), ("x" * 101,)])
def test_no_key_for_a_wrong_call(tmp_path, arguments):
    done = call(tmp_path, None, *arguments)
    assert (done.returncode, done.stdout) == (2, "") and "usage" in done.stderr


@pytest.mark.parametrize("word", ["keys", "--help", "-h"])
def test_unknown_command_starts_no_service(tmp_path, word):
    done = api({**os.environ, "CREWYARD_DATA": str(tmp_path), "CREWYARD_TOKEN_KEY": "0123456789abcdef"}, word)
    assert (done.returncode, done.stdout) == (2, "") and "backup" in done.stderr and "key" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_key_without_a_store(tmp_path):
    done = call(tmp_path, None)
    assert (done.returncode, done.stdout) == (1, "") and "start the service once" in done.stderr
    assert list(tmp_path.iterdir()) == []


async def test_unavailable_store(tmp_path):
    opened = await Store.open(tmp_path, "crews")
    await opened.close()
    (tmp_path / "index.sqlite3").write_bytes(b"this is no database" * 100)
    done = call(tmp_path, None)
    assert (done.returncode, done.stdout) == (1, "") and "no key was created" in done.stderr
