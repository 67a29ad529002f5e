"""Measurements of runs: latency, throughput, logs, artifacts, memory."""
