"""A stand-in for the API of Amazon SES, version 2."""
