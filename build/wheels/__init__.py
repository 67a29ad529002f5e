"""Download of wheels from a private package index with a confined pip."""
