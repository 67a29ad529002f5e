"""pygit2 on one remote, through a checked relay: credentials, host keys, errors."""
