"""Links from reasons to the documentation. Pure. Called by the views of deployments and runs."""

from crds.reasons import BuildReason, RunReason

_PAGE = "troubleshooting.html"
_DOCUMENTED_REASONS = frozenset({*BuildReason, *RunReason})
"""Reasons with their own section; a test checks the page for each of them."""


def link(docs_url: str, reason: object) -> dict[str, str]:
    """Return the `docs_url` field of an error; empty without documentation or for an unknown reason."""
    if not docs_url or reason not in _DOCUMENTED_REASONS:
        return {}
    return {"docs_url": f"{docs_url}/{_PAGE}#{str(reason).lower()}"}
