"""Google's token endpoint: a service account's signed assertion for an access token."""
