"""Plan of a source tree: the crew's framework, entrypoint, dependencies and image inputs. No I/O."""
