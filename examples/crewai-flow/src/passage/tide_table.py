"""The tool of the example."""

from crewai.tools import tool

_HARBOURS = {
    "bristol": '{"depth": 9.1, "high_water": "06:40"}',
    "hamburg": '{"depth": 13.5, "high_water": "04:15"}',
    "porto": '{"depth": 8.5, "high_water": "03:05"}',
}


@tool("tide_table")
def tide_table(harbour: str) -> str:
    """Look up a harbour in the tide table by its name."""
    if harbour.lower() not in _HARBOURS:
        raise LookupError(f"the table does not have {harbour}")
    return _HARBOURS[harbour.lower()]
