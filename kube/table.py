"""Lists as the apiserver prints them for kubectl, without the objects. Pure.

Source: Kubernetes, "API concepts", receiving resources as Tables. Called by `kube.client`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

ACCEPT = "application/json;as=Table;g=meta.k8s.io;v=v1"
WITHOUT_OBJECTS = {"includeObject": "None"}


def names(page: Mapping[str, Any]) -> Iterator[str]:
    """The objects' names in a page of a Table; the first column has them where none says so."""
    columns = page.get("columnDefinitions") or ()
    name = next((index for index, one in enumerate(columns) if one.get("format") == "name"), 0)
    return (str(row["cells"][name]) for row in page.get("rows") or ())
