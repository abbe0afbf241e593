"""The REST API: one module or package per resource."""
