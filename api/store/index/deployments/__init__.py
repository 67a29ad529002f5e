"""Deployments as rows: updates from Deployment objects, lists, the build queue, times of builds."""
