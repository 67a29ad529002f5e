"""Clients in other languages, generated from the OpenAPI document by `make clients`."""
