"""Configuration files of a crew: crew.toml, CrewAI's and LangGraph's own files."""
