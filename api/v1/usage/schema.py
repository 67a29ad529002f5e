"""JSON Schema and examples of daily usage. Pure."""

from api.prices import UNITS
from api.v1 import model_usage
from api.v1.fields import (
    COUNT,
    EXAMPLE_PROJECT_NAME,
    PROJECT_NAME,
    TEXT,
    Schema,
    described,
    nullable,
    response_object,
)

_AMOUNT: Schema = {"type": "number", "minimum": 0}
_DATE: Schema = {"type": "string", "format": "date"}
_MEASURES: dict[str, Schema] = {
    "runs": described(COUNT, "Finished runs."),
    "run_seconds": described(_AMOUNT, "Total run time of crews, in seconds."),
    "build_seconds": described(_AMOUNT, "Total build time of images in seconds, without queueing."),
    "artifact_bytes": described(COUNT, "Bytes of the artifacts of runs."),
    "prompt_tokens": described(COUNT, "Prompt tokens of models, as reported by crews."),
    "completion_tokens": described(COUNT, "Completion tokens of models, as reported by crews."),
    "cost": described(nullable(_AMOUNT), "The cost by the prices of the installation; null without prices."),
}
_SUBJECT: dict[str, Schema] = {
    "project": PROJECT_NAME,
    "from": described(_DATE, "The first day, in UTC."),
    "to": described(_DATE, "The last day, in UTC, inclusive."),
    "currency": described(nullable(TEXT), "The currency of `cost`; null without prices."),
}
_MODEL_PRICES = response_object(
    "ModelPrices",
    {
        "per_million_prompt_tokens": described(_AMOUNT, "The price of a million prompt tokens."),
        "per_million_completion_tokens": described(_AMOUNT, "The price of a million completion tokens."),
    },
    ("per_million_prompt_tokens", "per_million_completion_tokens"),
)
REPORT = response_object(
    "Usage",
    {
        **_SUBJECT,
        "prices": {
            "type": ["object", "null"],
            "required": ["currency"],
            "properties": {
                "currency": described(TEXT, "The currency."),
                **{name: described(_AMOUNT, f"The price `{name}`.") for name in UNITS},
                "models": {
                    "type": "object",
                    "additionalProperties": _MODEL_PRICES,
                    "description": "Prices of models, by name or by the beginning of a name.",
                },
            },
            "additionalProperties": False,
            "description": "The prices of the installation that are set, `CREWYARD_PRICES`; null without.",
        },
        "days": {
            "type": "array",
            "items": response_object("UsageDay", {"date": described(_DATE, "The day, in UTC."), **_MEASURES}),
            "description": "The days with usage.",
        },
        "total": response_object("UsageTotal", _MEASURES),
        "models": model_usage.SCHEMA,
        "limits": {
            "type": "array",
            "items": response_object(
                "LimitUse",
                {
                    "name": described(TEXT, "The limit, such as `queue`; more may follow."),
                    "used": described(COUNT, "What the project uses of it now."),
                    "limit": described(nullable(COUNT), "The limit; null if there is none."),
                },
            ),
            "description": "The project's limits, by its plan and the installation.",
        },
        "budget": described(
            nullable(
                response_object(
                    "BudgetUse",
                    {
                        "month": described(TEXT, "The calendar month, in UTC, such as 2026-11."),
                        "tokens": response_object(
                            "BudgetTokens",
                            {
                                "used": described(COUNT, "Prompt and completion tokens of ended runs."),
                                "limit": described(nullable(COUNT), "The budget; null if there is none."),
                            },
                        ),
                        "cost": response_object(
                            "BudgetCost",
                            {
                                "used": described(nullable(_AMOUNT), "The cost; null without prices."),
                                "limit": described(nullable(_AMOUNT), "The budget; null if there is none."),
                            },
                        ),
                        "exceeded": described({"type": "boolean"}, "Whether new runs are refused."),
                        "message": described(
                            nullable(TEXT), "What is used, from 80 % of the budget on; null below."
                        ),
                    },
                )
            ),
            "The project's budget for this month, for all `from` and `to`; null without one.",
        ),
        "run_budget": described(
            nullable(
                response_object(
                    "RunBudget",
                    {
                        "tokens": described(nullable(COUNT), "Prompt and completion tokens; null: no limit."),
                        "cost": described(nullable(_AMOUNT), "The cost; null: no limit."),
                    },
                )
            ),
            "The budget of each run, which is stopped above it; null without one.",
        ),
    },
)
PROJECT_USAGE = response_object("ProjectUsage", {**_SUBJECT, **_MEASURES})

_MEASURES_EXAMPLE = {
    "runs": 12,
    "run_seconds": 340.5,
    "build_seconds": 41.0,
    "artifact_bytes": 15360,
    "prompt_tokens": 41200,
    "completion_tokens": 8300,
    "cost": 0.184,
}
EXAMPLE = {
    "project": EXAMPLE_PROJECT_NAME,
    "from": "2026-11-21",
    "to": "2026-11-21",
    "currency": "USD",
    "prices": {
        "currency": "USD",
        "per_run_hour": 0.05,
        "per_million_prompt_tokens": 2.0,
        "models": {"gpt-4o": {"per_million_prompt_tokens": 2.5, "per_million_completion_tokens": 10.0}},
    },
    "days": [{"date": "2026-11-21", **_MEASURES_EXAMPLE}],
    "total": _MEASURES_EXAMPLE,
    "models": {"gpt-4o": {"prompt_tokens": 41200, "completion_tokens": 8300, "cost": 0.184}},
    "limits": [
        {"name": "concurrent_runs", "used": 1, "limit": 10},
        {"name": "project_bytes", "used": 15360, "limit": 10737418240},
    ],
    "budget": {
        "month": "2026-11",
        "tokens": {"used": 49500, "limit": 1000000},
        "cost": {"used": 0.184, "limit": None},
        "exceeded": False,
        "message": None,
    },
    "run_budget": {"tokens": 200000, "cost": None},
}
PROJECT_EXAMPLE = {
    "project": EXAMPLE_PROJECT_NAME,
    "from": "2026-11-01",
    "to": "2026-11-21",
    "currency": "USD",
    **_MEASURES_EXAMPLE,
}
CSV_EXAMPLE = (
    "date,runs,run_seconds,build_seconds,artifact_bytes,prompt_tokens,completion_tokens,cost\r\n"
    "2026-11-21,12,340.5,41.0,15360,41200,8300,0.184\r\n"
)
