"""The OpenAPI 3.1 document, generated from the endpoint tables that validate requests."""
