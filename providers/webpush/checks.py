"""Checks of the settings."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .. import setting_checks


def check_settings() -> Iterator[checks.CheckMessage]:
    """Report keys or a subject that push services don't take."""
    if not settings.WEBPUSH_KEYS:
        return
    # Imported here: few installations need it.
    from devices.push_keys import InvalidKeysError, read_keys

    from .vapid import Signer

    try:
        Signer(read_keys(settings.WEBPUSH_KEYS), subject=settings.WEBPUSH_SUBJECT)
    except InvalidKeysError as error:
        hint = "`manage.py webpush_keys` makes a key."
        yield setting_checks.error(str(error), hint, 38)
