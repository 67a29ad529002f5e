"""Runs: resolved, admitted, one pod each, and exactly one outcome."""
