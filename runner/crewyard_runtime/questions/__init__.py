"""Questions of a crew to a person: `ask`, `input()`, and what happens where a run cannot ask."""
