"""Submodules of a commit: their URLs and their fetches. Called by build.source.git_tree."""
