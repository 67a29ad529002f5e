"""Sends a message to a receiver, at checked addresses only. Called by `api.notifications.dispatcher`."""

from collections.abc import Mapping

from api.notifications.attempt import Attempt
from api.outbound.guarded_post import TIMEOUT_SECONDS, GuardedPoster, PostFailed
from egress.addresses import AddressRules, Resolver, system_resolver


class WebhookSender:
    """Sends messages within the address rules of the installation."""

    def __init__(
        self, rules: AddressRules, resolve: Resolver = system_resolver, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._poster = GuardedPoster(rules, resolve, timeout)

    def close(self) -> None:
        """Stop the threads of the resolver."""
        self._poster.close()

    async def send(self, address: str, content: bytes, headers: Mapping[str, str], project: str) -> Attempt:
        """POST a message of a project and return the result. No body of a response is read."""
        try:
            response = await self._poster.post(address, content, headers, project=project)
        except PostFailed as error:
            return Attempt(error=str(error))
        return Attempt(response.status, response.problem)
