"""Statistics of measurements: medians of pairs, with their spread. Pure.

A pair is one measurement of the peer and one on our side, taken one after the other; the first pair is a
warm-up and discarded, unless it is the only one.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

Pair = tuple[float, float]
MIN_PAIRS_FOR_P99 = 100
"""With fewer pairs no p99 is reported."""


@dataclass(frozen=True)
class Comparison:
    """Result of pairs (peer, ours), in their unit."""

    pairs: int
    peer: float
    ours: float
    ratio: float
    ratio_min: float
    ratio_max: float
    peer_p99: float
    ours_p99: float
    discarded: int = 1

    def line(self, unit: str) -> str:
        """Return the line for people."""
        if not self.discarded:
            return (
                f"ours {self.ours:.3g} {unit}, peer {self.peer:.3g} {unit}; ratio {self.ratio:.2f} "
                "(one pair, none discarded)"
            )
        text = (
            f"ours {self.ours:.3g} {unit}, peer {self.peer:.3g} {unit} (medians of {self.pairs}); "
            f"ratio {self.ratio:.2f} ({self.ratio_min:.2f} to {self.ratio_max:.2f})"
        )
        if self.pairs < MIN_PAIRS_FOR_P99:
            return text
        ratio = self.ours_p99 / self.peer_p99
        return (
            f"{text}; p99 ours {self.ours_p99:.3g} {unit}, peer {self.peer_p99:.3g} {unit}; ratio {ratio:.2f}"
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie, by nearest rank."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def without_warmup(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return all pairs but the first, or the only one."""
    return pairs[1:] or pairs


def compare(pairs: Sequence[Pair]) -> Comparison:
    """Compare the pairs without the warm-up. Raises ValueError if there are none."""
    if not pairs:
        raise ValueError("a comparison needs a pair")
    counted_pairs = without_warmup(pairs)
    ratios = [ours / peer for peer, ours in counted_pairs]
    peer_values, our_values = [peer for peer, _ in counted_pairs], [ours for _, ours in counted_pairs]
    return Comparison(
        pairs=len(counted_pairs),
        peer=statistics.median(peer_values),
        ours=statistics.median(our_values),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        peer_p99=percentile(peer_values, 0.99),
        ours_p99=percentile(our_values, 0.99),
        discarded=len(pairs) - len(counted_pairs),
    )


def spread(values: Sequence[float], unit: str) -> str:
    """Return median, minimum and maximum as text."""
    return f"{statistics.median(values):.3g} {unit} ({min(values):.3g} to {max(values):.3g}, n={len(values)})"
