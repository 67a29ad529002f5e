"""Names of labels in requests follow the rules of Kubernetes."""

import re

import pytest

from api.v1.runs.schema import LABEL_FILTER
from crds.runs import labels

LONGEST_PREFIX = ".".join(["a" * 63] * 3 + ["a" * 61])
LONGEST_NAME = "b" * 63


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("team", True),
        (f"example.com/{LONGEST_NAME}", True),
        (f"{LONGEST_PREFIX}/{LONGEST_NAME}", True),
        (f"a{LONGEST_PREFIX}/b", False),
        (f"example.com/b{LONGEST_NAME}", False),
        ("Example.com/team", False),
        ("crewyard.dev/team", False),
        ("app.kubernetes.io/name", False),
    ],
)
def test_name_of_a_label_follows_the_rules_of_kubernetes(name: str, accepted: bool) -> None:
    assert (re.fullmatch(labels.USER_NAME_PATTERN, name) is not None) is accepted
    assert not accepted or len(name) <= labels.NAME_MAX_LENGTH


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("team=tides", True),
        (",".join([f"{LONGEST_NAME}={LONGEST_NAME}"] * 4), True),
        (f"team=tides,{LONGEST_PREFIX}/team=tides", True),
        (f"team=tides,a{LONGEST_PREFIX}/team=tides", False),
    ],
)
def test_filter_takes_the_same_names(text: str, accepted: bool) -> None:
    assert (re.search(str(LABEL_FILTER["pattern"]), text) is not None) is accepted
