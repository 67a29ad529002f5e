"""The code of the build pods: fetch, check, assemble, push. Nothing of a crew is executed."""
