"""How the console's files are served; what it does is tested in a browser."""

import re
import subprocess
from pathlib import Path

import pytest

from api import console


async def fetched(testbed, path, **headers):
    async with testbed.client.get(path, allow_redirects=False, headers=headers) as answer:
        return answer.status, await answer.read(), answer.headers


async def test_the_addresses_of_people_lead_to_it(testbed):
    for path in ("/", "/console"):
        status, _, headers = await fetched(testbed, path)
        assert (status, headers["Location"]) == (302, "/console/")
    status, _, headers = await testbed.call("GET", "/console/", bearer="")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    again = await testbed.call("GET", "/console/", bearer="", headers={"If-None-Match": headers["ETag"]})
    assert (again[0], again[1]) == (304, b"")


async def test_nothing_comes_from_elsewhere_and_nothing_else_is_served(testbed):
    for name in console.load_files():
        status, body, headers = await fetched(testbed, f"/console/{name}")
        assert status == 200
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(rb"https?://(?!www\.w3\.org|git\.example\.com)", body), name
    for name in ("__init__.py", "..%2fapp.py", "none.js"):
        assert (await fetched(testbed, f"/console/{name}"))[0] == 404


def test_no_text_is_read_as_html():
    for name, file in console.load_files().items():
        assert not re.search(rb"(inner|outer)HTML|insertAdjacentHTML|document\.write|eval\(", file.body), name
        assert b"localStorage" not in file.body


@pytest.mark.parametrize("part", ["markdown", "silence", "files", "timeline", "address"])
def test_its_modules_bear_what_is_hostile_or_broken(part):
    script = Path(__file__).with_name("console_parts.mjs")
    done = subprocess.run(
        ["node", script, Path(console.__file__).parent, part],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
