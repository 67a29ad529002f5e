"""The source of a build: fetch by git or HTTP, unpack, check."""
