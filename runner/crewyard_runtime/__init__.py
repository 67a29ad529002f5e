"""What a crew can use of the service that runs it: `from crewyard_runtime import emit`."""

from .events import emit

__all__ = ["emit"]
