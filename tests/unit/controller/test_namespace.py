"""The controller of a namespace begins with the lead of its process."""

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from controller import namespace
from controller.attestation.reconcile import AttestationReconciler
from controller.config import ControllerConfig
from controller.namespace import NamespaceController, SharedServices
from controller.observability.metrics import ControllerMetrics
from controller.process import ControllerProcess
from crds import kinds
from tests.testbed.apiserver import serving


def test_attestations_count_from_the_lead(config: ControllerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby that counted from its start would name its own images for builds of the process before."""
    started: list[datetime] = []

    def made(*arguments: Any) -> AttestationReconciler:
        reconciler = AttestationReconciler(*arguments)
        started.append(reconciler.started)
        return reconciler

    monkeypatch.setattr(namespace, "AttestationReconciler", made)
    shared = Mock(spec=SharedServices, metrics=ControllerMetrics())
    for name in SharedServices.__dataclass_fields__.keys() - {"metrics"}:
        setattr(shared, name, Mock())
    controller = NamespaceController(Mock(), config, shared)
    assert started == []
    for loop in controller.loops():
        loop.close()
    assert len(started) == 1


async def test_slow_calls_of_a_team_keep_no_other_waiting(config: ControllerConfig) -> None:
    """A webhook for the namespace of one team may answer slowly, until its calls have all connections."""
    slow, answered = asyncio.Event(), asyncio.Event()

    async def pods(request: web.Request) -> web.Response:
        if request.match_info["namespace"] == "team-a":
            slow.set()
            await answered.wait()
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    path = kinds.POD.path("{namespace}")
    async with serving([web.get(path, pods)], connections=1) as kube:
        process = ControllerProcess(kube, replace(config, kopf=False, namespaces=("team-a", "team-b")))
        clients = {name: each.applier.kube for name, each in process.namespaces.items()}
        call = asyncio.create_task(clients["team-a"].list(kinds.POD))
        await slow.wait()
        async with asyncio.timeout(120):
            for name in (config.namespace, "team-b"):
                assert (await clients[name].list(kinds.POD)).items == []
        assert not call.done()
        answered.set()
        assert (await call).items == []
        stop = asyncio.Event()
        stop.set()
        await process.run(stop)
