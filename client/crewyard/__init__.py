"""Python client of Crewyard: `Client` is synchronous, `AsyncClient` asynchronous, with the same calls.

from crewyard import Client

with Client() as crewyard:                      # CREWYARD_URL and CREWYARD_API_KEY
    run = crewyard.start_run("research", {"topic": "boats"})
    for event in crewyard.follow_run(run["id"]):
        print(event["type"], event["data"])
"""

from crewyard.async_client import AsyncClient
from crewyard.client import Client
from crewyard.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    CrewyardError,
    Forbidden,
    InvalidRequest,
    NotFound,
    RateLimited,
    Unauthorized,
    Unavailable,
    WrongValue,
)

__all__ = [
    "ApiError",
    "AsyncClient",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "CrewyardError",
    "Forbidden",
    "InvalidRequest",
    "NotFound",
    "RateLimited",
    "Unauthorized",
    "Unavailable",
    "WrongValue",
]
__version__ = "0.1.0"
