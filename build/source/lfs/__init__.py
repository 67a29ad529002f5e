"""Files that a repository has in Git LFS. Called by build.source.git_tree."""
