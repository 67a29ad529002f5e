"""The code inside a crew's image: `pid1` is process 1 of a run pod, `crewyard_runtime` is the crew's side."""
