"""Runs the graph locally: `python -m agent harbours`."""

import sys

from agent.graph import graph

print(graph.invoke({"topic": " ".join(sys.argv[1:])}))
