"""Check of a plan's name in a request. Called by the routes of projects and keys."""

from api import errors
from api.routing.endpoint import EndpointCall


def check_known(call: EndpointCall, current: str | None = None) -> None:
    """Raise 400 for a plan that the installation does not have, unless it is the `current` one."""
    plan, known = call.body.get("plan"), call.services.config.plans.by_name
    if plan not in (None, current) and plan not in known:
        raise errors.invalid(f"plan must be one of {', '.join(sorted(known))}", "plan")
