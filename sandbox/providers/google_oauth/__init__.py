"""Google's token endpoint, which exchanges a service account's assertion for an access token."""
