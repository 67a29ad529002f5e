"""Commit statuses at GitLab, Gitea and Forgejo."""
