"""Where the documentation explains a reason. Pure. Called by the translations of deployments and runs."""

from crds.reasons import BuildReason, RunReason

_PAGE = "troubleshooting.html"
_EXPLAINED = frozenset({*BuildReason, *RunReason})
"""Those with a section of their own, which a test holds the page to."""


def link(docs_url: str, reason: object) -> dict[str, str]:
    """`docs_url` of an error; nothing where no documentation is served, or it does not know the reason."""
    if not docs_url or reason not in _EXPLAINED:
        return {}
    return {"docs_url": f"{docs_url}/{_PAGE}#{str(reason).lower()}"}
