"""Questions of runs to a person: their schemas, the check of answers, and their place in the Run object."""
