"""The crew's process and its limits: launch, signals, memory, disk usage."""
