"""GitHub's REST API, as far as deployments are told: commit statuses, deployments, pull requests.

Requests, headers and errors are gidgethub's; every call ends within `SECONDS`.
Called by `controller.github.reconcile`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import gidgethub
from gidgethub.aiohttp import GitHubAPI
from gidgethub.apps import get_installation_access_token
from jwt.exceptions import PyJWTError

from controller.github.credentials import App, Credentials, Token
from controller.github.report import Report
from crds.times import parse_time

SECONDS = 15.0
AGENT = "crewyard"
PASSING_STATUS = (408,)
EARLY = 300.0
"""A token of an App is renewed that many seconds before it expires."""
MOST_TOKENS = 100
QUIET = 60.0
"""Seconds of silence where GitHub says that it was asked too much, and not for how long."""


class GitHubProblem(Exception):
    """GitHub did not take it. `passing` where another try may help, after `after` seconds at the earliest.

    `status` is that of its answer, 0 where there was none.
    """

    def __init__(self, message: str, passing: bool, after: float = 0.0, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.passing = passing
        self.after = after
        self.status = status


@dataclass(frozen=True)
class _Lent:
    token: str
    until: float


class GitHub:
    """Speaks to one GitHub; `base_url` such as https://api.github.com or https://host/api/v3."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session: aiohttp.ClientSession | None = None
        self._lent: dict[App, _Lent] = {}

    async def close(self) -> None:
        """Ends the connections."""
        if self._session is not None:
            await self._session.close()

    async def tell_commit(self, credentials: Credentials, report: Report) -> None:
        """Sets the commit status. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            await api.post(
                f"/repos/{report.repository}/statuses/{report.commit}",
                data={
                    "state": report.commit_state,
                    "context": report.context,
                    "description": report.description,
                    **({"target_url": report.log_url} if report.log_url else {}),
                },
            )

    async def deployment(self, credentials: Credentials, report: Report) -> int:
        """The id of GitHub's own deployment, made where it is not there. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            there = await api.getitem(
                f"/repos/{report.repository}/deployments{{?sha,environment,per_page}}",
                {"sha": report.commit, "environment": report.environment, "per_page": "100"},
            )
            for found in there:
                if _name_of(found) == report.name:
                    return int(found["id"])
            made = await api.post(
                f"/repos/{report.repository}/deployments",
                data={
                    "ref": report.commit,
                    "environment": report.environment,
                    "description": report.description,
                    "payload": {"crewyard": report.name},
                    "auto_merge": False,
                    "required_contexts": [],
                    "transient_environment": report.transient,
                    "production_environment": not report.transient,
                },
            )
            return int(made["id"])

    async def tell_deployment(
        self, credentials: Credentials, report: Report, deployment: int, state: str
    ) -> None:
        """Sets the state of GitHub's deployment. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            await api.post(
                f"/repos/{report.repository}/deployments/{deployment}/statuses",
                data={
                    "state": state,
                    "environment": report.environment,
                    "description": report.description,
                    "auto_inactive": True,
                    **({"log_url": report.log_url} if report.log_url else {}),
                },
            )

    async def is_open(self, credentials: Credentials, repository: str, number: int) -> bool:
        """Whether a pull request is open. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            found = await api.getitem(f"/repos/{repository}/pulls/{number}")
            return bool(found["state"] == "open")

    @asynccontextmanager
    async def _api(self, credentials: Credentials) -> AsyncIterator[GitHubAPI]:
        try:
            async with asyncio.timeout(SECONDS):
                yield GitHubAPI(
                    self._connection(),
                    AGENT,
                    base_url=self._base_url,
                    oauth_token=await self._token(credentials),
                )
        except gidgethub.RateLimitExceeded as error:
            after = (error.rate_limit.reset_datetime - datetime.now(UTC)).total_seconds()
            raise GitHubProblem("GitHub's rate limit is used up", True, max(after, 1.0), 403) from error
        except gidgethub.HTTPException as error:
            if error.status_code == 401 and isinstance(credentials, App):
                # Lent by a key or an installation that was changed since: the next try asks for another one.
                self._lent.pop(credentials, None)
            raise _problem(error) from error
        except PyJWTError as error:
            raise GitHubProblem(
                "the App's private key cannot be used; it must be a PEM text", False
            ) from error
        except (gidgethub.GitHubException, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise GitHubProblem("GitHub does not answer; it is tried again", True) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GitHubProblem("what answers as GitHub does not speak its API", True) from error

    def _connection(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS))
        return self._session

    async def _token(self, credentials: Credentials) -> str:
        if isinstance(credentials, Token):
            return credentials.token
        lent = self._lent.get(credentials)
        if lent is None or lent.until <= time.time():
            api = GitHubAPI(self._connection(), AGENT, base_url=self._base_url)
            answer = await get_installation_access_token(
                api,
                installation_id=credentials.installation,
                app_id=credentials.app,
                private_key=credentials.key,
            )
            lent = _Lent(str(answer["token"]), parse_time(str(answer["expires_at"])).timestamp() - EARLY)
            while len(self._lent) >= MOST_TOKENS:
                del self._lent[next(iter(self._lent))]
            self._lent[credentials] = lent
        return lent.token


def _name_of(found: Any) -> str | None:
    payload = found.get("payload")
    if isinstance(payload, str):  # As some versions of GitHub Enterprise Server give it back.
        try:
            payload = json.loads(payload)
        except ValueError:
            return None
    return payload.get("crewyard") if isinstance(payload, dict) else None


def _problem(error: gidgethub.HTTPException) -> GitHubProblem:
    code = int(error.status_code)
    said = str(error).splitlines()[0][:200] if str(error) else ""
    wished = str(error.headers.get("retry-after") or "")
    after = float(wished) if wished.isdecimal() else 0.0
    if code == 429 or (code == 403 and "rate limit" in said.lower()):
        # Of its secondary limits only the words tell; who goes on asking is shut out for longer.
        return GitHubProblem("GitHub's rate limit is used up", True, after or QUIET, code)
    if code >= 500 or code in PASSING_STATUS or after:
        return GitHubProblem(f"GitHub answered {code}; it is tried again", True, after, code)
    hints = {
        401: "the token in spec.github.secretRef does not hold, or no longer",
        403: "the token in spec.github.secretRef lacks a permission: it must write commit statuses "
        "and deployments",
        404: "spec.github.repository is not there for the token in spec.github.secretRef",
        422: "the commit is not in spec.github.repository, or the App lacks a permission",
    }
    return GitHubProblem(f"GitHub answered {code}: {hints.get(code, said)}", False, status=code)
