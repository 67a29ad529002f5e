"""The command `crewyard`: one file a command or a group of commands, put together in `main`."""
