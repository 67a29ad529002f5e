"""Objects that count for a campaign: all of its namespace, or those of its project beside others."""

import pytest

from tests.campaign.testbed import CampaignTestbed


def made(**more):
    return CampaignTestbed("crews", None, None, None, None, None, "", "", "", None, project="mine", **more)


RUN = {"metadata": {"name": "run-a"}, "spec": {"project": "mine"}}
OTHER_RUN = {"metadata": {"name": "run-b"}, "spec": {"project": "other"}}
POD = {"metadata": {"name": "run-a", "labels": {"crewyard.dev/project": "mine"}}, "spec": {}}
OTHER_POD = {"metadata": {"name": "run-b", "labels": {"crewyard.dev/project": "other"}}, "spec": {}}


@pytest.mark.parametrize("raw", [RUN, POD])
def test_own_objects_count(raw):
    assert made().counts(raw) and made(is_shared=True).counts(raw)


@pytest.mark.parametrize("raw", [OTHER_RUN, OTHER_POD, {"metadata": {"name": "x"}, "spec": {}}])
def test_others_count_in_a_namespace_of_the_campaign_only(raw):
    assert made().counts(raw) and not made(is_shared=True).counts(raw)


def test_runs_of_a_shared_namespace_are_listed_by_project():
    assert made().runs_page(2, 100) == "/v1/runs?per_page=100&page=2"
    assert made(is_shared=True).runs_page(2, 100) == "/v1/runs?per_page=100&page=2&project=mine"
