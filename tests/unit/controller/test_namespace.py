"""The controller of a namespace begins with the lead of its process."""

from datetime import datetime
from typing import Any
from unittest.mock import Mock

import pytest

from controller import namespace
from controller.attestation.reconcile import AttestationReconciler
from controller.config import ControllerConfig
from controller.namespace import NamespaceController, SharedServices
from controller.observability.metrics import ControllerMetrics


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
