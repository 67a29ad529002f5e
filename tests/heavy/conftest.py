"""The fixtures of the runner's own tests: a pod without a cluster."""

from tests.unit.runner.conftest import api, pod

__all__ = ["api", "pod"]
