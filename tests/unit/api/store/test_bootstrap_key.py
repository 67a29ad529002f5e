"""Tests of `python -m api key` in the pod of the running service."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.__main__ import main
from api.store.store import Store
from crds import api_keys

ROOT = Path(__file__).parents[4]


def settings(data, database_url=None):
    return {
        "CREWYARD_DATA": str(data),
        "CREWYARD_DATABASE_URL": database_url or "",
        "CREWYARD_TOKEN_KEY": "0123456789abcdef",
        "CREWYARD_NAMESPACE": "crews",
    }


def call(data, database_url, *arguments):
    environment = {**os.environ, **settings(data, database_url)}
    return subprocess.run(
        [sys.executable, "-m", "api", "key", *arguments],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def refused(monkeypatch, tmp_path, capsys):
    """Call the program in this process with arguments that it refuses; return what it prints to stderr."""

    def run(*arguments):
        for name, value in settings(tmp_path).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["api", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert (stop.value.code, out, list(tmp_path.iterdir())) == (2, "", [])
        return err

    return run


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
def test_no_key_for_a_wrong_call(refused, arguments):
    assert "usage" in refused("key", *arguments)


@pytest.mark.parametrize("word", ["keys", "--help", "-h"])
def test_unknown_command_starts_no_service(refused, word):
    printed = refused(word)
    assert "backup" in printed and "key" in printed


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
