"""Checks of the settings."""

from collections.abc import Iterator

from django.core import checks

from .. import setting_checks
from ..spec import Account


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report keys or a subject that push services don't take."""
    if not account.values.WEBPUSH_KEYS:
        return
    # Imported here: few installations need it.
    from devices.push_keys import InvalidKeysError, read_keys

    from .vapid import Signer

    try:
        Signer(read_keys(account.values.WEBPUSH_KEYS), subject=account.values.WEBPUSH_SUBJECT)
    except InvalidKeysError as error:
        hint = "`manage.py webpush_keys` makes a key."
        yield setting_checks.error(str(error), hint, 38)
