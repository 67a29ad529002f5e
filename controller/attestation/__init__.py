"""Attestations of crew images: signed provenance and SBOM, attached to the image in the registry."""
