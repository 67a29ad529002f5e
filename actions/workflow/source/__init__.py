"""The checkout as a source archive: commit, tracked files, exclude patterns, upload progress."""
