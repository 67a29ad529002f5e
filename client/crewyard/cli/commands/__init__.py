"""The commands of `crewyard`, one file per command or group."""
