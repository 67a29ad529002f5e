"""Claims of runs by pods: the rows, the decision, and the run quota of a project."""
