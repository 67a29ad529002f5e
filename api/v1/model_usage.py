"""Usage by model, of a run and of a project: JSON and its schema. Pure. Called by the routes of both."""

from typing import Any

from api.prices import Prices
from api.store.token_counts import MAX_MODELS, OTHER_MODELS, ModelTokens
from api.v1.fields import COUNT, Schema, described, nullable, response_object

SCHEMA: Schema = {
    "type": "object",
    "additionalProperties": response_object(
        "ModelUsage",
        {
            "prompt_tokens": described(COUNT, "Prompt tokens."),
            "completion_tokens": described(COUNT, "Completion tokens."),
            "cost": described(
                nullable({"type": "number", "minimum": 0}),
                "The cost of these tokens by the prices of the installation; null without a price.",
            ),
        },
    ),
    "description": "The part of the tokens whose model the crew names, by this name. Of a run, and of a day, "
    f"the first {MAX_MODELS} names are kept; `{OTHER_MODELS}` has the rest.",
}


def by_model(models: ModelTokens, prices: Prices | None) -> dict[str, dict[str, Any]]:
    """Return the usage of each model, the one with the most tokens first."""
    return {
        name: {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cost": prices.cost_of_tokens(name, prompt, completion) if prices else None,
        }
        for name, (prompt, completion) in sorted(models.items(), key=lambda item: (-sum(item[1]), item[0]))
    }
