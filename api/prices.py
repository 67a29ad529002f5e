"""Prices of an installation and the cost of usage. Pure.

Called by `api.config`, which reads the table, and by what shows a cost.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from api.store.index.usage import Measures

UNITS: Mapping[str, tuple[str, int]] = {
    "per_run": ("runs", 1),
    "per_run_hour": ("run_ms", 3_600_000),
    "per_build_hour": ("build_ms", 3_600_000),
    "per_artifact_gib": ("artifact_bytes", 1 << 30),
    "per_million_prompt_tokens": ("prompt_tokens", 1_000_000),
    "per_million_completion_tokens": ("completion_tokens", 1_000_000),
}
"""Price → the measure and how much of it the price is for."""
_TOKEN_PRICES = ("per_million_prompt_tokens", "per_million_completion_tokens")
"""The prices that a model may have, in the order of `Measures.models`."""
_MAX_RATE = Decimal(10) ** 9
_COST_PRECISION = Decimal("0.000001")


@dataclass(frozen=True)
class Prices:
    """A currency, the price per unit of each priced measure, and the token prices of models by name."""

    currency: str
    rates: Mapping[str, Decimal]
    models: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the currency and the prices, as they are set."""
        models = {name: _numbers(rates) for name, rates in self.models.items()}
        return {"currency": self.currency, **_numbers(self.rates), **({"models": models} if models else {})}

    def cost(self, measures: Measures) -> float:
        """Return the cost, rounded to a millionth."""
        total = Decimal(0)
        for name, rate in self.rates.items():
            measure, unit = UNITS[name]
            total += rate * getattr(measures, measure) / unit
        # The general prices of all tokens are in the total: what a model's own ones differ by is added.
        for model, counts in measures.models.items():
            own = model_rates(self.models, model)
            for name, count in zip(_TOKEN_PRICES, counts, strict=True):
                if name in own:
                    total += (own[name] - self.rates.get(name, 0)) * count / UNITS[name][1]
        return float(total.quantize(_COST_PRECISION))

    def cost_of_tokens(self, model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the cost of a call of a model; None if its tokens have no price."""
        if not self.rates.keys() & set(_TOKEN_PRICES) and not model_rates(self.models, model):
            return None
        return self.cost(
            Measures(
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                models={model: (prompt_tokens, completion_tokens)},
            )
        )


def model_rates(models: Mapping[str, Mapping[str, Decimal]], name: str) -> Mapping[str, Decimal]:
    """Return the entry of a model: the longest that its name begins with; empty without one.

    Without one, that of the name after its first `/`: `openai/gpt-4o` has the entry `gpt-4o`. The runner has
    the same rule (`runner.pid1.budget`).
    """
    while name:
        if found := [entry for entry in models if name.startswith(entry)]:
            return models[max(found, key=len)]
        name = name.partition("/")[2]
    return {}


def _numbers(rates: Mapping[str, Decimal]) -> dict[str, float]:
    return {name: float(rate) for name, rate in rates.items()}


def parse_prices(text: str) -> Prices | None:
    """Parse CREWYARD_PRICES; None if empty. Raises ValueError with the correct form."""
    if not text.strip():
        return None
    try:
        table = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise ValueError("must be a JSON object") from error
    if not isinstance(table, dict) or not isinstance(table.get("currency"), str) or not table["currency"]:
        raise ValueError('needs a currency, for example {"currency": "USD", "per_run_hour": 0.05}')
    rates = {name: value for name, value in table.items() if name not in ("currency", "models")}
    if unknown := next((name for name in rates if name not in UNITS), None):
        raise ValueError(f"unknown field {unknown!r}; use currency, models, " + ", ".join(UNITS))
    return Prices(
        table["currency"],
        {name: _rate(name, value) for name, value in rates.items()},
        _model_prices(table.get("models", {})),
    )


def _model_prices(value: Any) -> dict[str, dict[str, Decimal]]:
    is_table = (
        isinstance(value, dict) and all(value) and all(isinstance(v, dict) and v for v in value.values())
    )
    if not is_table:
        raise ValueError(
            'models must have prices of tokens by the name of a model, for example {"gpt-4o": '
            '{"per_million_prompt_tokens": 2.5, "per_million_completion_tokens": 10}}'
        )
    for model, rates in value.items():
        if unknown := next((name for name in rates if name not in _TOKEN_PRICES), None):
            raise ValueError(f"unknown field {unknown!r} of model {model!r}; use {', '.join(_TOKEN_PRICES)}")
    return {
        model: {name: _rate(f"{name} of model {model!r}", rate) for name, rate in rates.items()}
        for model, rates in value.items()
    }


def _rate(name: str, value: Any) -> Decimal:
    try:
        rate = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        rate = None
    if rate is None or not rate.is_finite() or not 0 <= rate <= _MAX_RATE:
        raise ValueError(f"{name} must be a number from 0 to {_MAX_RATE}")
    return rate
