"""Client of GitHub's REST API: commit statuses, deployments, pull requests and their comments.

gidgethub makes requests, headers and errors; every call ends within `TIMEOUT_SECONDS`.
Called by `controller.github.reconcile`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import gidgethub
from gidgethub.aiohttp import GitHubAPI
from gidgethub.apps import get_installation_access_token
from jwt.exceptions import PyJWTError

from controller.github.comment import PullRequestComment
from controller.github.credentials import Credentials, GitHubApp, GitHubToken
from controller.github.report import DeploymentReport
from crds.times import parse_time

TIMEOUT_SECONDS = 15.0
USER_AGENT = "crewyard"
TRANSIENT_STATUSES = (408,)
TOKEN_RENEW_SECONDS = 300.0
"""Seconds before the expiry at which an App's token is renewed."""
MAX_CACHED_TOKENS = 100
MAX_COMMENTS = 1000
"""Comments of a pull request that are searched for the project's own."""
RATE_LIMIT_SECONDS = 60.0
"""Pause after a rate limit without a stated duration."""


class GitHubProblem(Exception):
    """Failed call. `transient` if a retry may help, after `retry_after` seconds at the earliest.

    `status` is the HTTP status, 0 without a response.
    """

    def __init__(self, message: str, transient: bool, after: float = 0.0, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.transient = transient
        self.retry_after = after
        self.status = status


@dataclass(frozen=True)
class _InstallationToken:
    token: str
    expires_at: float


class GitHub:
    """Client of one GitHub; `base_url` such as https://api.github.com or https://host/api/v3."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._session: aiohttp.ClientSession | None = None
        self._tokens: dict[GitHubApp, _InstallationToken] = {}

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def set_commit_status(self, credentials: Credentials, report: DeploymentReport) -> None:
        """Set the commit status. Raises GitHubProblem."""
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

    async def ensure_deployment(self, credentials: Credentials, report: DeploymentReport) -> int:
        """Return the id of GitHub's deployment; create it if missing. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            existing = await api.getitem(
                f"/repos/{report.repository}/deployments{{?sha,environment,per_page}}",
                {"sha": report.commit, "environment": report.environment, "per_page": "100"},
            )
            for deployment in existing:
                if _name_of(deployment) == report.name:
                    return int(deployment["id"])
            created = await api.post(
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
            return int(created["id"])

    async def set_deployment_status(
        self, credentials: Credentials, report: DeploymentReport, deployment: int, state: str
    ) -> None:
        """Set the state of GitHub's deployment. Raises GitHubProblem."""
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
        """Return whether a pull request is open. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            pull_request = await api.getitem(f"/repos/{repository}/pulls/{number}")
            return bool(pull_request["state"] == "open")

    async def put_comment(self, credentials: Credentials, comment: PullRequestComment) -> None:
        """Create the project's comment on a pull request, or replace an older one. Raises GitHubProblem."""
        async with self._api(credentials) as api:
            issues = f"/repos/{comment.repository}/issues"
            address = f"{issues}/{comment.number}/comments"
            found = await self._own_comment(api, credentials, address, comment.marker)
            if found is None:
                await api.post(address, data={"body": comment.body})
            elif comment.replaces(_body(found)):
                await api.patch(f"{issues}/comments/{found['id']}", data={"body": comment.body})

    async def _own_comment(
        self, api: GitHubAPI, credentials: Credentials, address: str, marker: str
    ) -> dict[str, Any] | None:
        """Return the comment with the marker by the credentials' account; anybody may write the marker."""
        read, login = 0, ""
        async for found in api.getiter(f"{address}?per_page=100"):
            read += 1
            if _body(found).startswith(marker):
                if not login and isinstance(credentials, GitHubToken):
                    login = str((await api.getitem("/user"))["login"])
                if _is_own(found, credentials, login):
                    return dict(found)
            if read == MAX_COMMENTS:
                break
        return None

    @asynccontextmanager
    async def _api(self, credentials: Credentials) -> AsyncIterator[GitHubAPI]:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                yield GitHubAPI(
                    self._connection(),
                    USER_AGENT,
                    base_url=self._base_url,
                    oauth_token=await self._token(credentials),
                )
        except gidgethub.RateLimitExceeded as error:
            after = (error.rate_limit.reset_datetime - datetime.now(UTC)).total_seconds()
            raise GitHubProblem("GitHub's rate limit is exhausted", True, max(after, 1.0), 403) from error
        except gidgethub.HTTPException as error:
            if error.status_code == 401 and isinstance(credentials, GitHubApp):
                # Key or installation changed since: the next call requests another token.
                self._tokens.pop(credentials, None)
            raise _problem(error) from error
        except PyJWTError as error:
            raise GitHubProblem("the App's private key is invalid; it must be PEM", False) from error
        except (gidgethub.GitHubException, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise GitHubProblem("GitHub does not respond; will retry", True) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GitHubProblem(
                "the server at CREWYARD_GITHUB_URL does not serve GitHub's API", True
            ) from error

    def _connection(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))
        return self._session

    async def _token(self, credentials: Credentials) -> str:
        if isinstance(credentials, GitHubToken):
            return credentials.token
        installation = self._tokens.get(credentials)
        if installation is None or installation.expires_at <= time.time():
            api = GitHubAPI(self._connection(), USER_AGENT, base_url=self._base_url)
            response = await get_installation_access_token(
                api,
                installation_id=credentials.installation,
                app_id=credentials.app,
                private_key=credentials.key,
            )
            installation = _InstallationToken(
                str(response["token"]),
                parse_time(str(response["expires_at"])).timestamp() - TOKEN_RENEW_SECONDS,
            )
            while len(self._tokens) >= MAX_CACHED_TOKENS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[credentials] = installation
        return installation.token


def _name_of(deployment: Any) -> str | None:
    payload = deployment.get("payload")
    if isinstance(payload, str):  # Some versions of GitHub Enterprise Server return it as text.
        try:
            payload = json.loads(payload)
        except ValueError:
            return None
    return payload.get("crewyard") if isinstance(payload, dict) else None


def _is_own(comment: Mapping[str, Any], credentials: Credentials, login: str) -> bool:
    """Return whether the App, or the account of that login, wrote a comment."""
    if isinstance(credentials, GitHubApp):
        return str((comment.get("performed_via_github_app") or {}).get("id")) == credentials.app
    return bool(comment["user"]["login"] == login)


def _body(comment: Mapping[str, Any]) -> str:
    return str(comment["body"] or "").replace("\r\n", "\n")


def _problem(error: gidgethub.HTTPException) -> GitHubProblem:
    code = int(error.status_code)
    text = str(error).splitlines()[0][:200] if str(error) else ""
    retry_after = str(error.headers.get("retry-after") or "")
    after = float(retry_after) if retry_after.isdecimal() else 0.0
    if code == 429 or (code == 403 and "rate limit" in text.lower()):
        # Secondary limits show only in the message; further requests extend the block.
        return GitHubProblem("GitHub's rate limit is exhausted", True, after or RATE_LIMIT_SECONDS, code)
    if code >= 500 or code in TRANSIENT_STATUSES or after:
        return GitHubProblem(f"GitHub responded {code}; will retry", True, after, code)
    hints = {
        401: "the token in spec.github.secretRef is invalid or has expired",
        403: "the token in spec.github.secretRef lacks a permission: it must write commit statuses "
        "and deployments, and with spec.github.comment pull requests",
        404: "the token in spec.github.secretRef cannot access spec.github.repository, or it does not exist",
        422: "the commit is not in spec.github.repository, or the App lacks a permission",
    }
    return GitHubProblem(f"GitHub responded {code}: {hints.get(code, text)}", False, status=code)
