"""Telling the calling apps what became of their notifications, by a request to a URL of theirs."""
