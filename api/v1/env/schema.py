"""JSON Schemas and examples of environment variables. Pure."""

from api.v1.fields import NO_NUL_PATTERN, TEXT, TIMESTAMP, Schema, described, request_object, response_object

MAX_VARIABLES = 500
MAX_VARIABLE_BYTES = 131_071
"""Of `NAME=value` in UTF-8: Linux starts no program with a longer variable (MAX_ARG_STRLEN with the NUL)."""
NAME: Schema = {
    "type": "string",
    "maxLength": 128,
    "pattern": "^(?!CREWYARD_|PYTHON|PATH$|HOME$)[A-Za-z_][A-Za-z0-9_]*$",
    "description": (
        "A variable's name consists of letters, digits and underscores and does not begin with a digit; "
        "CREWYARD_*, PYTHON*, PATH and HOME are set by the service."
    ),
}
_VALUE: Schema = {
    "type": "string",
    "maxLength": MAX_VARIABLE_BYTES - 2,
    "pattern": NO_NUL_PATTERN,
    "description": "A variable's value, without the character NUL.",
}
REPLACE = request_object(
    ["variables"],
    {
        "variables": {
            "type": "object",
            "maxProperties": MAX_VARIABLES,
            "propertyNames": NAME,
            "additionalProperties": _VALUE,
            "description": "All variables of the project by name; variables not listed are removed.",
        }
    },
    title="Variables",
)
SET = request_object(["value"], {"value": _VALUE}, title="VariableValue")
ITEM = response_object(
    "Variable",
    {
        "name": described(TEXT, "The name of the variable."),
        "updated_at": described(TIMESTAMP, "When its value was last set."),
    },
)

EXAMPLE_NAME = "OPENAI_API_KEY"
REPLACE_EXAMPLE = {"variables": {EXAMPLE_NAME: "sk-example", "TOPIC": "tides"}}
SET_EXAMPLE = {"value": "sk-example"}
EXAMPLE = {"name": EXAMPLE_NAME, "updated_at": "2026-11-21T10:00:00Z"}
