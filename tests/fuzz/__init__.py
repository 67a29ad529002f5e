"""Fuzzers of all parsers of untrusted input. `python -m tests.fuzz`; see docs/development.md."""
