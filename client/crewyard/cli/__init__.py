"""The command line `crewyard`: one file per command or group, registered in `main`."""
