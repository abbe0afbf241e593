"""Settings for each kind of installation. Only ``environment`` reads variables."""
