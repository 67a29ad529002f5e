"""Clients in other languages, made from the API's description by `make clients`."""
