"""One measured thing: its name, unit and numbers. Created by measurements, printed by __main__."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.lib.statistics import Pair, compare, spread


@dataclass(frozen=True)
class Finding:
    """Pairs (peer, ours), or our values alone, or a plain fact; `peer` names the comparison."""

    code: str
    what: str
    unit: str = "s"
    pairs: Sequence[Pair] = ()
    values: Sequence[float] = ()
    peer: str = ""
    fact: str = ""

    def line(self) -> str:
        """Return the line for people."""
        parts = [self.fact] if self.fact else []
        if self.pairs:
            parts.append(compare(self.pairs).line(self.unit))
        if self.values:
            parts.append(spread(self.values, self.unit))
        peer_note = f" (peer: {self.peer})" if self.peer else ""
        return f"{self.code} {self.what}{peer_note}: {'; '.join(parts)}"

    def record(self) -> dict[str, Any]:
        """Return the record for the result file, with every number."""
        document = {key: value for key, value in asdict(self).items() if value}
        if self.pairs:
            document["comparison"] = asdict(compare(self.pairs))
        return document
