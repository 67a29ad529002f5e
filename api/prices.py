"""Prices of an installation and the cost of usage. Pure.

Called by `api.config`, which reads the table, and by what shows a cost.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
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
_TOKEN_PRICES = {"per_million_prompt_tokens", "per_million_completion_tokens"}
_MAX_RATE = Decimal(10) ** 9
_COST_PRECISION = Decimal("0.000001")


@dataclass(frozen=True)
class Prices:
    """A currency and the price per unit of each priced measure."""

    currency: str
    rates: Mapping[str, Decimal]

    def as_json(self) -> dict[str, str | float]:
        """Return the currency and the rates, as they are set."""
        return {"currency": self.currency, **{name: float(rate) for name, rate in self.rates.items()}}

    def cost(self, measures: Measures) -> float:
        """Return the cost, rounded to a millionth."""
        total = Decimal(0)
        for name, rate in self.rates.items():
            measure, unit = UNITS[name]
            total += rate * getattr(measures, measure) / unit
        return float(total.quantize(_COST_PRECISION))

    def cost_of_tokens(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return the cost of a call of a model; None if tokens have no price."""
        if not self.rates.keys() & _TOKEN_PRICES:
            return None
        return self.cost(Measures(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens))


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
    return Prices(
        table["currency"], {name: _rate(name, v) for name, v in table.items() if name != "currency"}
    )


def _rate(name: str, value: Any) -> Decimal:
    if name not in UNITS:
        raise ValueError(f"unknown field {name!r}; use currency, " + ", ".join(UNITS))
    try:
        rate = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        rate = None
    if rate is None or not rate.is_finite() or not 0 <= rate <= _MAX_RATE:
        raise ValueError(f"{name} must be a number from 0 to {_MAX_RATE}")
    return rate
