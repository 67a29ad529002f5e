"""Polls of the pull requests of previews, with a stub of GitHub's API."""

import base64
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controller.github.client import GitHub
from controller.github.reconcile import GitHubReconciler
from crds import kinds
from crds.names import ANNOTATION_CLOSED
from crds.objects import Object
from crds.times import format_time
from kube.errors import KubeConflict
from tests.testbed.github_server import REPOSITORY, TOKEN, github_server
from tests.unit.controller.memory_kube import ReconcilerTestbed

SECRET = {
    "metadata": {"name": "github", "labels": {"crewyard.dev/project": "demo"}},
    "data": {"token": base64.b64encode(TOKEN.encode()).decode()},
}
COMMIT = {"git": {"url": f"https://github.com/{REPOSITORY}.git", "commit": "a" * 40}}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"gitSha": "a" * 7},
        {"source": COMMIT, "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
    ],
    ids=["without a commit", "with a short commit", "older than a day"],
)
async def test_previews_that_are_not_reported_end_with_their_request(make, config, spec):
    testbed = ReconcilerTestbed()
    testbed.kube.put(kinds.SECRET, Object(SECRET))
    settings = {"repository": REPOSITORY, "secretRef": {"name": "github"}}
    testbed.show(kinds.PROJECT, make.project(github=settings))
    testbed.show(kinds.DEPLOYMENT, make.deployment("dep-a", preview={"pullRequest": 7}, **spec))
    async with github_server() as server:
        github = GitHub(server.url)
        reconciler = GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github)
        await reconciler.reconcile("dep-a")
        assert server.request_count == 1 and not server.statuses
        server.closed.add(7)
        reconciler.memory.pull_requests_polled.clear()
        await reconciler.reconcile("dep-a")
        await github.close()
    stored = testbed.kube.objects["deployments", "dep-a"]
    assert stored["metadata"]["annotations"][ANNOTATION_CLOSED] == "pull request 7"


@pytest.mark.parametrize(("status", "result"), [(422, "unknown_commit"), (403, "refused"), (502, "passing")])
async def test_a_commit_that_was_not_pushed_counts_as_no_refusal(make, config, status, result):
    testbed = ReconcilerTestbed()
    testbed.kube.put(kinds.SECRET, Object(SECRET))
    testbed.show(
        kinds.PROJECT, make.project(github={"repository": REPOSITORY, "secretRef": {"name": "github"}})
    )
    testbed.show(
        kinds.DEPLOYMENT,
        make.deployment(
            "dep-a", source=COMMIT, metadata={"creationTimestamp": format_time(datetime.now(UTC))}
        ),
    )
    async with github_server() as server:
        server.failures.append(status)
        github = GitHub(server.url)
        await GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github).reconcile(
            "dep-a"
        )
        await github.close()
    samples = testbed.applier.metrics.github.collect()[0].samples
    counted = {one.labels["result"] for one in samples if one.name.endswith("_total") and one.value}
    assert counted == {result}


async def test_a_refusal_after_a_success_is_a_second_event(make, config):
    testbed = ReconcilerTestbed()
    testbed.kube.put(kinds.SECRET, Object(SECRET))
    settings = {"repository": REPOSITORY, "secretRef": {"name": "github"}, "comment": True}
    testbed.show(kinds.PROJECT, make.project(github=settings))
    created = {"creationTimestamp": format_time(datetime.now(UTC))}
    preview = make.deployment("dep-a", preview={"pullRequest": 7}, source=COMMIT, metadata=created)
    testbed.show(kinds.DEPLOYMENT, preview)
    async with github_server() as server:
        github = GitHub(server.url)
        reconciler = GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github)

        async def events(*missing: str) -> int:
            """Report and poll with these permissions missing; return the number of Events since."""
            server.missing_permissions = set(missing)
            reconciler.memory.pull_requests_polled.clear()
            await reconciler.reconcile("dep-a")
            queue = testbed.applier.recorder._queue
            return len([queue.get_nowait() for _ in range(queue.qsize())])

        # The report is made without the comment, which is tried again with the next state.
        found = [await events("comments"), await events()]
        found += [await events("pulls"), await events("pulls"), await events(), await events("pulls")]
        closed = testbed.kube.objects["deployments", "dep-a"]
        closed["metadata"]["annotations"][ANNOTATION_CLOSED] = "pull request 7"
        testbed.show(kinds.DEPLOYMENT, Object(closed))
        found.append(await events("comments"))
        await github.close()
    assert found == [1, 0, 1, 0, 0, 1, 0]
    assert server.deployments[0]["states"] == ["success", "inactive"]


def preview_testbed(make) -> ReconcilerTestbed:
    """Return a Project that comments, with the credential of GitHub, and a preview of today."""
    testbed = ReconcilerTestbed()
    testbed.kube.put(kinds.SECRET, Object(SECRET))
    settings = {"repository": REPOSITORY, "secretRef": {"name": "github"}, "comment": True}
    testbed.show(kinds.PROJECT, make.project(github=settings))
    created = {"creationTimestamp": format_time(datetime.now(UTC))}
    preview = make.deployment("dep-a", preview={"pullRequest": 7}, source=COMMIT, metadata=created)
    testbed.show(kinds.DEPLOYMENT, preview)
    return testbed


async def test_a_failed_comment_repeats_no_deployment_status(make, config):
    testbed = preview_testbed(make)
    async with github_server() as server:
        github = GitHub(server.url)
        reconciler = GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github)
        server.failing = {"comments": 502}
        await reconciler.reconcile("dep-a")
        await reconciler.reconcile("dep-a")
        server.failing = {}
        await reconciler.reconcile("dep-a")
        await github.close()
    assert len(server.comments) == 1
    assert server.deployments[0]["states"] == ["success"]


@pytest.mark.parametrize(("status", "closed"), [(422, True), (403, True), (502, True), (429, False)])
async def test_a_preview_ends_with_its_request_also_without_a_report(make, config, status, closed):
    """After a rate limit, no request follows."""
    testbed = preview_testbed(make)
    async with github_server() as server:
        github = GitHub(server.url)
        reconciler = GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github)
        server.failing = {"statuses": status}
        server.closed.add(7)
        await reconciler.reconcile("dep-a")
        await github.close()
    stored = testbed.kube.objects["deployments", "dep-a"]
    assert (ANNOTATION_CLOSED in stored["metadata"].get("annotations", {})) is closed
    assert reconciler.memory.failures == {"dep-a": 1}


async def test_a_closed_request_is_read_again_after_a_conflict(make, config):
    testbed = preview_testbed(make)
    async with github_server() as server:
        github = GitHub(server.url)
        reconciler = GitHubReconciler(testbed.applier, replace(config, github_url=server.url), github)
        server.closed.add(7)
        # The report itself changes the resourceVersion.
        with pytest.raises(KubeConflict):
            await reconciler.reconcile("dep-a")
        await reconciler.reconcile("dep-a")
        await github.close()
    stored = testbed.kube.objects["deployments", "dep-a"]
    assert stored["metadata"]["annotations"][ANNOTATION_CLOSED] == "pull request 7"
