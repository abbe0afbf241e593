"""Checks a commit that is to be a release, and builds what is published: ``make release``."""
