"""Messages, verified by the library that receivers use."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from api.notifications.message import SigningSecretInvalid, body, headers, signing_secret
from tests.unit.api.notifications.test_attempt import NOW, row

KEY = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def stored(text: str) -> dict:
    return {"data": {"secret": base64.b64encode(text.encode()).decode()}}


def test_the_verifier_of_the_library_accepts_a_message_and_no_other():
    content = body(row(), {"id": "run_a", "output": "Grüße \ud800"})
    now = datetime.now(UTC)
    sent = headers(KEY, row(), content, now)
    found = Webhook(KEY).verify(content, sent)
    assert found == {
        "type": "run.failed",
        "timestamp": NOW.isoformat().replace("+00:00", "Z"),
        "data": {"id": "run_a", "output": "Grüße \ud800"},
    }
    assert sent["webhook-id"] == "msg_a"
    with pytest.raises(WebhookVerificationError):
        Webhook(KEY).verify(content.replace(b"run_a", b"run_b"), sent)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(bytes(32)).decode()).verify(content, sent)
    # The time is the attempt's, not the event's: verifiers refuse old messages.
    late = headers(KEY, row(), content, now - timedelta(minutes=6))
    with pytest.raises(WebhookVerificationError):
        Webhook(KEY).verify(content, late)


def test_a_signing_secret_is_read_with_or_without_a_line_break():
    assert signing_secret(stored(KEY + "\n"), "hook") == KEY


@pytest.mark.parametrize(
    "secret",
    [
        None,
        {},
        {"data": {"token": "eA=="}},
        {"data": {"secret": "no base64!"}},
        stored("plain text of 32 characters, no"),
        stored("whsec_"),
        stored("whsec_" + base64.b64encode(bytes(23)).decode()),
        stored("whsec_" + base64.b64encode(bytes(65)).decode()),
        stored("whsec_no+base64!"),
    ],
    ids=json.dumps,
)
def test_other_secrets_are_refused_with_the_next_step(secret):
    with pytest.raises(SigningSecretInvalid, match="hook"):
        signing_secret(secret, "hook")
