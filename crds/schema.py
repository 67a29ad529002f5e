"""The CRDs' own schemas, read from their YAML: the one place where fields are defined.

Called by the facade (to check what it is about to create, and to describe it)
and by the tests that hold documentation against code.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, FormatChecker

from crds import names
from crds.kinds import DEPLOYMENT, PROJECT, RUN, Kind

_FILES = {PROJECT.plural: "project.yaml", DEPLOYMENT.plural: "deployment.yaml", RUN.plural: "run.yaml"}


@cache
def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of one of our kinds, as it is applied."""
    loaded: dict[str, Any] = yaml.safe_load((Path(__file__).parent / _FILES[kind.plural]).read_text())
    return loaded


@cache
def openapi(kind: Kind) -> dict[str, Any]:
    """The openAPIV3Schema of one of our kinds."""
    versions = definition(kind)["spec"]["versions"]
    schema: dict[str, Any] = next(v for v in versions if v["name"] == names.VERSION)["schema"][
        "openAPIV3Schema"
    ]
    return schema


@cache
def validator(kind: Kind) -> Draft202012Validator:
    """Checks objects of a kind by types, sizes and patterns; CEL rules are the apiserver's to check."""
    return Draft202012Validator(openapi(kind), format_checker=FormatChecker())
