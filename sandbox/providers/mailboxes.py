"""What all providers of email share: the mailbox of an address chooses the outcome of a mail."""

EMPTY, NOT_JSON = "empty", "not-json"
"""Outcomes: accepted, with an empty object or a page in place of the answer."""


def magic(address: str) -> str:
    """Return an address's outcome name: the local part before any plus sign, in lower case."""
    return address.partition("@")[0].partition("+")[0].lower()
