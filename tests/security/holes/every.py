"""All holes. Called by their tests."""

from tests.security.holes import callers, pod_tls, secret_use, sources, tenants, words
from tests.security.holes.hole import Hole

HOLES: tuple[Hole, ...] = (
    *callers.HOLES,
    *pod_tls.HOLES,
    *secret_use.HOLES,
    *sources.HOLES,
    *tenants.HOLES,
    *words.HOLES,
)
