"""Discovery of an entrypoint by reading the source, where no configuration names one; executes nothing."""
