"""Addresses as the wire wants them."""

from email_validator import validate_email


def ascii_email(address: str) -> str:
    """Return a mail address with its domain in ASCII; raises ValueError if it cannot be one.

    By the rules of today: those that the standard library and Django know make another domain of
    one with an eszett.
    """
    if address.isascii():
        return address
    checked = validate_email(
        address, check_deliverability=False, allow_smtputf8=False, test_environment=True
    )
    return checked.ascii_email or address
