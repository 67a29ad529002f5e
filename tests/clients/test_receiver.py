"""The JavaScript receiver of docs/notifications.md accepts messages of the service and refuses others."""

import base64
import os
import re
import subprocess
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from api.notifications.message import body, headers
from tests.clients.conftest import ROOT
from tests.unit.api.notifications.test_attempt import row
from tests.unit.api.notifications.test_message import KEY

PAGE = ROOT / "docs" / "notifications.md"
OTHER_KEY = "whsec_" + base64.b64encode(bytes(32)).decode()


@pytest.fixture
def receiver(sources):
    """Yield the receiver's process and its URL."""
    (code,) = re.findall(r"^```js\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (sources / "receiver.mjs").write_text(code)
    environment = {**os.environ, "WEBHOOK_SECRET": KEY, "PORT": "0"}
    with subprocess.Popen(
        ["node", "receiver.mjs"], cwd=sources, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().removeprefix("listening on ").strip()
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def post(url: str, content: bytes, sent: dict[str, str]) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, content, sent), timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_receiver_verifies_messages(receiver):
    process, url = receiver
    content, now = body(row(), {"id": "run_a", "output": "Gr\u00fc\u00dfe"}), datetime.now(UTC)
    sent = headers(KEY, row(), content, now)
    assert post(url, content, sent) == 204
    assert process.stdout.readline() == "run.failed run_a\n"
    assert post(url, content.replace(b"run_a", b"run_b"), sent) == 401
    assert post(url, content, headers(OTHER_KEY, row(), content, now)) == 401
    assert post(url, content, headers(KEY, row(), content, now - timedelta(minutes=6))) == 401
    assert post(url, content, {}) == 401
