"""Numbers and what may be said about them: medians of pairs, with their spread.

Pure. A pair is one measurement of the peer and one of ours, taken one after
the other; the first pair warms up and is discarded by rule.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

Pair = tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """What pairs (peer, ours) show, in the unit they were taken in."""

    pairs: int
    peer: float
    ours: float
    ratio: float
    ratio_min: float
    ratio_max: float
    peer_p99: float
    ours_p99: float

    def line(self, unit: str) -> str:
        """For people."""
        return (
            f"ours {self.ours:.3g} {unit}, peer {self.peer:.3g} {unit} (medians of {self.pairs}); "
            f"ratio {self.ratio:.2f} ({self.ratio_min:.2f} to {self.ratio_max:.2f})"
        )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie, by the nearest rank."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def compare(pairs: Sequence[Pair]) -> Comparison:
    """Compares all pairs but the first. Raises ValueError for fewer than two."""
    if len(pairs) < 2:
        raise ValueError("a comparison needs at least two pairs; the first is discarded")
    kept = pairs[1:]
    ratios = [ours / peer for peer, ours in kept]
    peers, own = [peer for peer, _ in kept], [ours for _, ours in kept]
    return Comparison(
        pairs=len(kept),
        peer=statistics.median(peers),
        ours=statistics.median(own),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        peer_p99=percentile(peers, 0.99),
        ours_p99=percentile(own, 0.99),
    )


def spread(values: Sequence[float], unit: str) -> str:
    """Median, least and greatest, for people."""
    return f"{statistics.median(values):.3g} {unit} ({min(values):.3g} to {max(values):.3g}, n={len(values)})"
