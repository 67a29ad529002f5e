"""The condition and the Event of notifications that no receiver takes."""

import pytest

from controller.project.decide import decide
from crds.names import ANNOTATION_FAILING_NOTIFICATIONS


def with_notifications(make, recorded, names=("chat", "pager"), status=None):
    annotations = {} if recorded is None else {ANNOTATION_FAILING_NOTIFICATIONS: recorded}
    entries = [{"name": name, "url": "https://hooks.example.com"} for name in names]
    return make.project(notifications=entries, metadata={"annotations": annotations}, status=status)


def condition(status):
    return next((one for one in status["conditions"] if one["type"] == "NotificationsFailing"), None)


@pytest.mark.parametrize("recorded", [None, "", "other", "cha", ",", "x" * 10_000])
def test_without_a_failing_notification_there_is_no_condition(make, recorded):
    decision = decide(with_notifications(make, recorded), [], None, make.now)
    assert condition(decision.status) is None and decision.events == ()


def test_the_condition_names_them_until_they_recover_or_are_removed(make):
    decision = decide(with_notifications(make, "pager,chat"), [], None, make.now)
    found = condition(decision.status)
    assert (found["status"], found["reason"]) == ("True", "DeliveryFailed")
    assert found["message"].startswith("chat, pager: ") and "-p demo" in found["message"]
    assert [event.reason for event in decision.events] == ["DeliveryFailed"]
    status = dict(decision.status)
    again = decide(with_notifications(make, "chat", status=status), [], None, make.now)
    assert condition(again.status)["message"].startswith("chat: ") and again.events == ()
    for recorded, names in ((None, ("chat", "pager")), ("chat", ("pager",)), ("chat", ())):
        ended = decide(with_notifications(make, recorded, names, status), [], None, make.now)
        assert condition(ended.status) is None
