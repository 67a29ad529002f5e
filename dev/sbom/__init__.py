"""Software bills of materials and the audit of what they list: `make sbom`, `make audit`."""
