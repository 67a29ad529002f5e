"""The schemas of the CRDs, read from their YAML: the only definition of the fields.

Called by the API (to validate objects before it creates them, and for its OpenAPI document) and by tests that
compare documentation with code.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, FormatChecker

from crds import names
from crds.kinds import DEPLOYMENT, PROJECT, RUN, Kind

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser of libyaml if PyYAML has it: ten times as fast, at each start of the API server."""
_FILES = {PROJECT.plural: "project.yaml", DEPLOYMENT.plural: "deployment.yaml", RUN.plural: "run.yaml"}


@cache
def definition(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind, as it is applied."""
    text = (Path(__file__).parent / _FILES[kind.plural]).read_text()
    crd: dict[str, Any] = yaml.load(text, Loader=_LOADER)
    return crd


@cache
def openapi(kind: Kind) -> dict[str, Any]:
    """Return the openAPIV3Schema of a kind."""
    versions = definition(kind)["spec"]["versions"]
    schema: dict[str, Any] = next(v for v in versions if v["name"] == names.VERSION)["schema"][
        "openAPIV3Schema"
    ]
    return schema


@cache
def validator(kind: Kind) -> Draft202012Validator:
    """Return a validator of types, sizes and patterns; only the apiserver checks CEL rules."""
    return Draft202012Validator(openapi(kind), format_checker=FormatChecker())
