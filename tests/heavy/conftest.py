"""The fixtures of the runner's own tests: a pod without a cluster."""

from tests.unit.runner.conftest import facade, pod

__all__ = ["facade", "pod"]
