"""pygit2 against one remote through an egress relay: credentials, host keys, errors."""
