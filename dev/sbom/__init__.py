"""Software bills of materials and their audit: `make sbom`, `make audit`."""
