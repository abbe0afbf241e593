"""Settings for each kind of installation. Only ``environment`` reads environment variables."""
