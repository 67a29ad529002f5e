"""Proof that a build of the project made an image: in the Deployment's status, checked before it is used."""
