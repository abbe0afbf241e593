"""``manage.py webpush_keys``: a new key before the others, and the browsers of each."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from devices import registration
from devices.models import Platform
from devices.push_keys import new_key, read_keys
from devices.registration import Registration
from domain.web_push import Fingerprint, Subscription
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")


def lines() -> list[str]:
    out = StringIO()
    call_command("webpush_keys", stdout=out)
    return out.getvalue().splitlines()


def browser(name: str, own: Fingerprint) -> None:
    subscription = Subscription(
        endpoint=f"https://web.push.apple.com/{name}",
        host="web.push.apple.com",
        p256dh=bytes(65),
        auth=bytes(16),
        fingerprint=own,
    )
    new = Registration(user_id=name, token=subscription, platform=Platform.WEB)
    registration.register(new, now=NOON)


def test_new_key_comes_before_the_others(settings: Any) -> None:
    settings.WEBPUSH_KEYS = (old := new_key().private_text,)
    setting, public, *_ = lines()
    name, _, value = setting.partition("=")
    added, *others = value.split(",")
    assert (name, others) == ("WEBPUSH_KEYS", [old])
    assert public == f"# Public key: {read_keys([added])[0].public_text}"


def test_browsers_of_each_key_are_counted(settings: Any) -> None:
    key = new_key()
    settings.WEBPUSH_KEYS = (key.private_text,)
    for name, own in (("ada", key.fingerprint), ("bob", Fingerprint("0" * 16))):
        browser(name, own)
    assert lines()[-2:] == [
        f"# {key.fingerprint}: 1 active browsers",
        f"# {'0' * 16}: 1 active browsers, not configured: they get no push",
    ]


def test_unusable_key_is_told_without_its_text(settings: Any) -> None:
    settings.WEBPUSH_KEYS = ("no key",)
    with pytest.raises(CommandError, match="Key 1 of WEBPUSH_KEYS"):
        lines()
