"""The API of the service for crews: `from crewyard_runtime import emit`."""

from .events import emit

__all__ = ["emit"]
