"""Fuzzers of all that reads what strangers write. `python -m tests.fuzz`; see docs/development.md."""
