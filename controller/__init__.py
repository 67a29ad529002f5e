"""Crewyard controller: reconciles Projects, Deployments and Runs."""
