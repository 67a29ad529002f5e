"""Measurements of sources and builds: polling, push, redeploy, rollback."""
