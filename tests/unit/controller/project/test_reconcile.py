"""Reconcile of a Project where the apiserver refuses its NetworkPolicy, or its head is being deleted."""

import time
from dataclasses import replace

import pytest
from aiohttp import web

from controller.images.reconcile import ImageCollector
from controller.observability.metrics import ControllerMetrics
from controller.pods.run_egress import EgressTarget
from controller.project import revision
from controller.project.reconcile import ProjectReconciler
from controller.runtime.apply import Applier
from controller.runtime.cache import ObjectCache
from controller.runtime.event_handlers import EventHandlers
from controller.runtime.queues import Queues
from controller.runtime.recorder import Recorder
from controller.source.observed import ObservedSource, ObservedSources
from crds import kinds
from crds.conditions import find
from crds.deployment_name import git_name
from kube import errors
from tests.testbed.apiserver import serving
from tests.unit.controller.memory_kube import ReconcilerTestbed

PROJECT = kinds.PROJECT.path("crews", "demo")
DEPLOYMENTS = kinds.DEPLOYMENT.path("crews")
POLICIES = kinds.NETWORK_POLICY.path("crews")
RUNS, PODS = kinds.RUN.path("crews"), kinds.POD.path("crews")


class RefusingApiserver:
    """Serves one Project with its Deployments, and refuses one method of the NetworkPolicies."""

    def __init__(self, project, deployments, method, reason):
        self.project, self.deployments = project, deployments
        self.refusals = {method: reason}

    def routes(self):
        return [
            web.get(PROJECT, self.get),
            web.patch(PROJECT + "{status:(/status)?}", self.patch),
            web.get(DEPLOYMENTS, self.list_deployments),
            web.patch(DEPLOYMENTS + "/{name}{status:(/status)?}", self.patch_deployment),
            web.get(RUNS, self.list_nothing),
            web.get(PODS, self.list_nothing),
            web.get(POLICIES + "/{name}", self.policy),
            web.post(POLICIES, self.policy),
        ]

    async def get(self, _):
        return web.json_response(self.project)

    async def patch(self, request):
        self.project["status"] |= (await request.json()).get("status", {})
        return await self.get(request)

    async def list_deployments(self, _):
        return web.json_response({"items": self.deployments, "metadata": {"resourceVersion": "9"}})

    async def patch_deployment(self, request):
        [deployment] = self.deployments
        deployment["status"] |= (await request.json()).get("status", {})
        return web.json_response(deployment)

    async def list_nothing(self, _):
        return web.json_response({"items": [], "metadata": {"resourceVersion": "9"}})

    async def policy(self, request):
        reason = self.refusals.get(request.method, "NotFound")
        status = {"NotFound": 404, "Forbidden": 403, "Invalid": 422}[reason]
        return web.json_response({"reason": reason, "message": f"{reason} for a test"}, status=status)


@pytest.mark.parametrize(
    ("method", "reason", "error"),
    [
        ("POST", "Invalid", errors.Invalid),
        ("POST", "Forbidden", errors.KubeForbidden),
        ("GET", "Forbidden", errors.KubeForbidden),
    ],
)
async def test_a_refused_policy_stops_no_activation(make, config, method, reason, error):
    project = make.project(run={"egress": [{"namespace": "tools"}]}).raw
    cluster = RefusingApiserver(project, [make.deployment().raw], method, reason)
    async with serving(cluster.routes()) as kube:
        cache, queues, metrics = ObjectCache(), Queues(time.monotonic), ControllerMetrics()
        handlers, recorder = EventHandlers(cache, queues), Recorder(kube, metrics)
        applier = Applier(kube, cache, handlers, queues, recorder, metrics)
        settings = replace(config, run_egress=(EgressTarget("tools"),))
        reconciler = ProjectReconciler(
            applier, settings, ObservedSources(), ImageCollector(applier, settings), lambda *_: None
        )
        # The worker logs it and tries again later: a corrected role changes no Project.
        with pytest.raises(error):
            await reconciler.reconcile("demo")
    assert project["status"]["activeDeployment"] == "dep-a"
    limited = find(project["status"]["conditions"], "Limited")
    assert (limited["status"], limited["reason"]) == ("True", "EgressRefused")
    assert f"{reason} for a test" in limited["message"]


class DeletingCollector:
    """A collector of images that is deleting those of some Deployments."""

    def __init__(self, *names):
        self._names = frozenset(names)

    async def refresh(self, _name):
        return self._names

    async def collect(self, _project, _deployments):
        return None


async def test_a_head_whose_deployment_is_being_deleted_is_deployed_later(make, config):
    testbed, git = ReconcilerTestbed(), {"url": "https://example.org/x.git"}
    status = {"lastOrder": 2, "source": {"commit": "b" * 40, "tree": "tb", "order": 2}}
    project = make.project(source={"git": git}, status=status)
    testbed.show(kinds.PROJECT, project)
    head = ObservedSource(git, "", "main", "a" * 40, "ta", "subject")
    spec = revision.desired_spec(project, head)
    name = git_name(project.uid, spec, 1)
    testbed.show(kinds.DEPLOYMENT, make.deployment(name, order=1, phase="Superseded", **spec))
    sources = ObservedSources()
    sources.put("demo", head)
    collector = DeletingCollector(name)
    reconciler = ProjectReconciler(testbed.applier, config, sources, collector, lambda *_: None)
    # The first one writes conditions, which enqueues the Project.
    await reconciler.reconcile("demo")
    await testbed.queued()
    await reconciler.reconcile("demo")
    # It waits: a key that is ready at once would be reconciled again and again.
    assert "projects/demo" not in await testbed.queued()
    assert testbed.queues.main.scheduled == 1
