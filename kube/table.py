"""Lists in the apiserver's Table format, as kubectl prints them, without the objects. Pure.

Source: Kubernetes, "API concepts", receiving resources as Tables. Called by `kube.client`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

ACCEPT = "application/json;as=Table;g=meta.k8s.io;v=v1"
WITHOUT_OBJECTS = {"includeObject": "None"}


def names(page: Mapping[str, Any]) -> Iterator[str]:
    """Yield the object names in a Table page, from the column of format `name`, else from the first one."""
    columns = page.get("columnDefinitions") or ()
    name_index = next((index for index, column in enumerate(columns) if column.get("format") == "name"), 0)
    return (str(row["cells"][name_index]) for row in page.get("rows") or ())
