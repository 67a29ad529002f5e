"""Runs the graph on a laptop: `python -m agent harbours`."""

import sys

from agent.graph import graph

print(graph.invoke({"topic": " ".join(sys.argv[1:])}))
