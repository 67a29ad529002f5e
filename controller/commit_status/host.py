"""Client of the hosts of commit statuses. Called by `controller.commit_status.reconcile`."""

import aiohttp

from controller.commit_status.request import StatusProblem, StatusRequest, problem_of

TIMEOUT_SECONDS = 15.0
MAX_RESPONSE_BYTES = 64 * 1024


class StatusHost:
    """Connections to GitLab, Gitea and Forgejo."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def send(self, provider: str, request: StatusRequest) -> None:
        """Set the commit status. Raises StatusProblem."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))
        try:
            # No redirect gets the token.
            async with self._session.post(
                request.url, json=dict(request.body), headers=dict(request.headers), allow_redirects=False
            ) as response:
                text = (await response.content.read(MAX_RESPONSE_BYTES)).decode(errors="replace")
                problem = problem_of(provider, response.status, response.headers, text)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise StatusProblem(f"{provider} does not respond; will retry", True) from error
        if problem is not None:
            raise problem
