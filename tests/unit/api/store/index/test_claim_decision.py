"""Table of the decision whether a pod gets a run: row of the run, row of its claim, identity of the pod."""

from types import SimpleNamespace
from typing import Any

import pytest

from api.store.index.claims.claim_decision import NO_INPUT, WITHDRAWN, ClaimRequest, decide, no_input
from crds.json_depth import MAX_STORED_DEPTH
from crds.limits import CONFIG_BYTES

REQUEST = ClaimRequest("uid", "pod", "nonce")
FREE = {"uid": "uid", "withdrawn": False, "hidden": False, "status": "pending", "cancel": False, "input": {}}
HELD = {"run_uid": "uid", "pod_uid": "pod", "nonce": "nonce"}
OTHER_POD = "the run was given to another pod"
EXECUTED = "the name was executed before; a name executes once"
CANCELED = "the run was canceled"
ENDED = "the run has ended"


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({}, "grant"),
        ({"input": None}, NO_INPUT),
        ({"uid": None}, "unknown"),
        ({"uid": "another"}, EXECUTED),
        ({"withdrawn": True}, WITHDRAWN),
        ({"hidden": True}, WITHDRAWN),
        ({"withdrawn": True, "uid": None}, WITHDRAWN),
        ({"hidden": True, "uid": None}, WITHDRAWN),
        ({"cancel": True}, CANCELED),
        ({"cancel": True, "input": None}, CANCELED),
        ({"cancel": True, "uid": "another"}, EXECUTED),
        ({"status": "succeeded"}, ENDED),
        ({"status": "failed", "cancel": True}, ENDED),
        ({"status": "running"}, "grant"),
    ],
)
def test_a_run_without_a_claim(changes: dict[str, Any], decision: str) -> None:
    assert decide(SimpleNamespace(**{**FREE, **changes}), None, REQUEST) == decision


def test_a_run_that_the_index_lacks() -> None:
    assert decide(None, None, REQUEST) == "unknown"
    # Its claim outlives the row.
    assert decide(None, SimpleNamespace(**HELD), REQUEST) == WITHDRAWN


@pytest.mark.parametrize("field", HELD)
def test_another_identity_is_denied_before_all_else(field: str) -> None:
    claim = SimpleNamespace(**{**HELD, field: "another"})
    for changes in ({}, {"withdrawn": True}, {"status": "succeeded"}, {"cancel": True}):
        assert decide(SimpleNamespace(**{**FREE, **changes}), claim, REQUEST) == OTHER_POD
    assert decide(None, claim, REQUEST) == OTHER_POD


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({}, "same"),
        ({"input": None}, "same"),
        ({"status": "running"}, "same"),
        ({"withdrawn": True}, WITHDRAWN),
        ({"hidden": True}, WITHDRAWN),
        ({"status": "canceled"}, ENDED),
        ({"cancel": True}, CANCELED),
    ],
)
def test_a_pod_that_asks_again(changes: dict[str, Any], decision: str) -> None:
    assert decide(SimpleNamespace(**{**FREE, **changes}), SimpleNamespace(**HELD), REQUEST) == decision


@pytest.mark.parametrize(
    ("max_bytes", "size"), [(1024, "1 KiB"), (64 << 10, "64 KiB"), (1025, "1025 bytes"), (100, "100 bytes")]
)
def test_the_reason_for_no_input_names_the_limits(max_bytes: int, size: str) -> None:
    assert no_input(max_bytes) == (
        f"the Run has no usable input: spec.input is larger than {size} or deeper than "
        f"{MAX_STORED_DEPTH} levels, spec.config or spec.context is larger than {CONFIG_BYTES >> 10} KiB, "
        "or spec.inputRef names an input that the API did not create; "
        f"put at most {size} into spec.input, or use POST /v1/runs"
    )
