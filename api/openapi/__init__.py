"""The API's description: one OpenAPI 3.1 document, made of the tables that requests are checked by."""
