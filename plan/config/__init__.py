"""Configuration files of a crew: crew.toml and the files of CrewAI and LangGraph."""
