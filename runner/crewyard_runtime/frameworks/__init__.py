"""CrewAI and LangChain hooks that report agent, tool and usage events."""
