"""Check of a run's input against `[run.inputs]` of its deployment's configuration.

Called by the routes that create runs or set schedules, and by the claim for runs of other clients.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from api.questions.answer_schema import check_value
from crds import entrypoints


async def check_declared_input(
    plan: Mapping[str, Any], entrypoint: str | None, value: Any, field: str = "input"
) -> None:
    """Raise 400 naming the part of `field` if the configuration declares another input of the entrypoint."""
    declared = plan.get("inputs") or {}
    runs_default = entrypoints.target(entrypoint, plan) == plan.get("entrypoint")
    if declared.get("declared") and runs_default:
        await asyncio.to_thread(check_value, value, declared["schema"], field)
