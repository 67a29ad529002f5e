"""What a run uses of its budget in tokens and cost. Used by `supervise`; the limits come with the grant.

The cost follows the installation's prices: of the run itself, of its time and of its tokens.
"""

from __future__ import annotations

import threading

WARNING_SHARE = 0.8
MAX_TOKENS = 10**9
"""Greatest count of one `usage` event; the API server ignores greater ones too."""
_SECONDS_PER_HOUR = 3600
_TOKENS_PER_PRICE = 1_000_000


class RunBudget:
    """The use of one run. `exceeded` is the message once it is above a limit. Thread-safe.

    `elapsed` is in seconds since the grant.
    """

    def __init__(self, granted: object) -> None:
        """Read the limits and prices of a grant; without them nothing is limited."""
        fields = granted if isinstance(granted, dict) else {}
        prices = fields.get("prices")
        rates = prices if isinstance(prices, dict) else {}
        self._token_limit = _limit(fields.get("tokens"))
        self._cost_limit = _limit(fields.get("cost")) if rates else None
        self._per_run = _rate(rates, "per_run")
        self._per_second = _rate(rates, "per_run_hour") / _SECONDS_PER_HOUR
        self._rates = rates
        self._tokens = 0
        self._cost_of_tokens = 0.0
        self._warned = False
        self._lock = threading.Lock()
        self.exceeded: str | None = None

    def count(self, model: str, prompt: int, completion: int, elapsed: float) -> dict[str, object] | None:
        """Add the tokens of a call of a model; return the data of the warning if it is due now."""
        per_prompt, per_completion = token_rates(self._rates, model)
        with self._lock:
            self._tokens += prompt + completion
            self._cost_of_tokens += (prompt * per_prompt + completion * per_completion) / _TOKENS_PER_PRICE
        return self.check(elapsed)

    def check(self, elapsed: float) -> dict[str, object] | None:
        """Set `exceeded` if a limit is exceeded; return the data of the warning if it is due now."""
        with self._lock:
            cost = self._cost(elapsed)
            used = ((self._tokens, self._token_limit), (cost, self._cost_limit))
            limited = [(use, limit) for use, limit in used if limit is not None]
            if self.exceeded is None and any(use > limit for use, limit in limited):
                self.exceeded = (
                    f"The run was stopped above its budget: it used {self._amounts(cost)}. Raise "
                    "`budget.run` of the project, or give the crew less work."
                )
            if self._warned or not any(0 < use >= WARNING_SHARE * limit for use, limit in limited):
                return None
            self._warned = True
            return {
                "tokens": {"used": self._tokens, "limit": self._token_limit},
                "cost": {"used": None if self._cost_limit is None else cost, "limit": self._cost_limit},
                "message": f"the run has used {self._amounts(cost)} of its budget; above it, it is stopped",
            }

    def seconds_to_change(self, elapsed: float) -> float:
        """Return the seconds until time alone makes a warning due or exceeds a limit; infinite if never."""
        if self._cost_limit is None or self._per_second <= 0 or self.exceeded is not None:
            return float("inf")
        share = 1.0 if self._warned else WARNING_SHARE
        left = share * self._cost_limit - self._cost(elapsed)
        # A little later, so the use is above the limit then.
        return max(0.0, left / self._per_second) + 0.01

    def _cost(self, elapsed: float) -> float:
        return round(self._per_run + elapsed * self._per_second + self._cost_of_tokens, 6)

    def _amounts(self, cost: float) -> str:
        texts = []
        if self._token_limit is not None:
            texts.append(f"{self._tokens:,} of {self._token_limit:,} tokens")
        if self._cost_limit is not None:
            texts.append(f"{_amount(cost)} of the cost {_amount(self._cost_limit)}")
        return " and ".join(texts)


def usage_of(data: dict[str, object]) -> tuple[str, int, int]:
    """Return model, prompt and completion tokens of a `usage` event; "" and 0 for invalid ones. Pure."""
    model = data.get("model")
    counts = _count(data.get("prompt_tokens")), _count(data.get("completion_tokens"))
    return model if isinstance(model, str) else "", *counts


def token_rates(prices: dict[str, object], model: str) -> tuple[float, float]:
    """Return the prices of a million prompt and completion tokens of a model. Pure.

    The API server has the same rule (`api.prices`).
    """
    models = prices.get("models")
    entry = _entry(models, model) if isinstance(models, dict) else {}

    def rate(name: str) -> float:
        return _rate(entry if name in entry else prices, name)

    return rate("per_million_prompt_tokens"), rate("per_million_completion_tokens")


def _entry(models: dict[str, object], name: str) -> dict[str, object]:
    while name:
        if found := [entry for entry in models if name.startswith(entry)]:
            value = models[max(found, key=len)]
            return value if isinstance(value, dict) else {}
        name = name.partition("/")[2]
    return {}


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def _limit(value: object) -> int | float | None:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return value if valid else None  # type: ignore[return-value]


def _rate(rates: dict[str, object], name: str) -> float:
    value = rates.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0


def _amount(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")
