"""Serving of the console's files. tests/e2e/console/test_console.py tests it in a browser."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from api import console


async def fetch(testbed, path, **headers):
    async with testbed.client.get(path, allow_redirects=False, headers=headers) as answer:
        return answer.status, await answer.read(), answer.headers


async def test_redirects_and_etag(testbed):
    for path in ("/", "/console"):
        status, _, headers = await fetch(testbed, path)
        assert (status, headers["Location"]) == (302, "/console/")
    status, _, headers = await testbed.call("GET", "/console/", bearer="")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    # A proxy that compresses makes the tag a weak one.
    for tag in (headers["ETag"], f"W/{headers['ETag']}"):
        again = await testbed.call("GET", "/console/", bearer="", headers={"If-None-Match": tag})
        assert (again[0], again[1]) == (304, b"")


async def test_only_own_files_with_strict_policy(testbed):
    for name in console.load_files():
        status, body, headers = await fetch(testbed, f"/console/{name}")
        assert status == 200
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(rb"https?://(?!www\.w3\.org|git\.example\.com)", body), name
    for name in ("__init__.py", "..%2fapp.py", "none.js"):
        assert (await fetch(testbed, f"/console/{name}"))[0] == 404


def test_first_visit_loads_at_most_200_kib():
    assert sum(len(file.body) for file in console.load_files().values()) <= 200 * 1024


def test_no_html_parsing():
    for name, file in console.load_files().items():
        assert not re.search(rb"(inner|outer)HTML|insertAdjacentHTML|document\.write|eval\(", file.body), name
        assert b"localStorage" not in file.body


PARTS = (
    "markdown", "silence", "outage", "files", "events", "pauses", "steps", "csv", "statistics", "money",
    "stages", "address", "waiting", "search", "variables", "schedules", "creators", "keys", "session",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_modules_handle_hostile_input(part):
    script = Path(__file__).with_name("console_parts.mjs")
    done = subprocess.run(
        ["node", script, Path(console.__file__).parent, part],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "LC_ALL": "en_US.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
