"""``manage.py reencrypt``: stored values move to the newest key and stay readable."""

from io import StringIO
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import CommandError, call_command

from access.staff import second_factor
from callbacks import subscriptions
from callbacks.events import EventType
from devices import registration
from devices import subscriptions as browsers
from devices.models import Platform
from devices.registration import Registration
from devices.sealing import unseal
from domain.content import SensitiveContent
from domain.rooms import RoomKind
from domain.web_push import Fingerprint, Subscription
from notifications.files import parts
from notifications.store import encrypted_content
from notifyproject.db.collections import collection
from notifyproject.platform import encryption
from rooms import registry as rooms
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, read

pytestmark = pytest.mark.usefixtures("db")
OLD, NEW = {"old": b"o" * 32}, {"new": b"n" * 32}
SUBSCRIPTION = Subscription(
    endpoint="https://web.push.apple.com/ada",
    host="web.push.apple.com",
    p256dh=bytes(65),
    auth=bytes(16),
    fingerprint=Fingerprint("f" * 16),
)
BROWSER = Registration(user_id="ada", token=SUBSCRIPTION, platform=Platform.WEB)
SECRET = SensitiveContent(data={"code": "123456"}, secrets=("123456",))


COUNTS = {
    "second factors": 1,
    "callback secrets": 1,
    "targets and secrets of rooms": 2,
    "sensitive contents": 1,
    "parts of files": 1,
    "subscriptions of browsers": 1,
}


def totals(key: str, *, is_changed: bool) -> list[str]:
    """Return what the command prints once all values are under a key."""
    return [
        f"{name}: {count} under {key}; {count if is_changed else 0} re-encrypted"
        for name, count in COUNTS.items()
    ]


def reencrypt(*options: str) -> list[str]:
    out = StringIO()
    call_command("reencrypt", *options, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def stored(settings: Any) -> tuple[ObjectId, ObjectId, str]:
    """Store values of each kind under the old key, then list the new one before it."""
    settings.FIELD_ENCRYPTION_KEYS = OLD
    user = ObjectId()
    pending = second_factor.begin_enrollment(user, name="maria", now=NOON)
    subscriptions.put(
        client_id=CLIENT,
        url="https://example.com/",
        events=[EventType.DELIVERY_SENT],
        allow_loopback=False,
        now=NOON,
    )
    registration.register(BROWSER, now=NOON)
    rooms.create(
        slug="ops",
        kind=RoomKind.WEBHOOK,
        name="Operations",
        target="https://hooks.example.com/ops",
        min_gap_seconds=1,
        now=NOON,
    )
    parts.write_head(ObjectId(), parts.Head(name="people.csv"), until=NOON)
    notification = factories.accepted(secret=SECRET)["_id"]
    settings.FIELD_ENCRYPTION_KEYS = NEW | OLD
    return user, notification, pending.key


def test_every_value_is_readable_without_the_old_key(
    stored: tuple[ObjectId, ObjectId, str], settings: Any
) -> None:
    user, notification, key = stored
    before = collection("callbacks").find_one({"_id": CLIENT})["secrets"]
    (secret,) = subscriptions.signing_secrets(before, client_id=CLIENT, now=NOON)
    target = rooms.find_rooms()["ops"].target()
    assert reencrypt("--dry-run") == totals("old", is_changed=False)
    assert reencrypt() == totals("new", is_changed=True)
    settings.FIELD_ENCRYPTION_KEYS = NEW
    assert second_factor.begin_enrollment(user, name="maria", now=NOON).key == key
    device = collection("devices").find_one({"_id": registration.id_of(SUBSCRIPTION)})
    assert unseal(browsers.sealed(device)) == SUBSCRIPTION
    after = collection("callbacks").find_one({"_id": CLIENT})["secrets"]
    assert subscriptions.signing_secrets(after, client_id=CLIENT, now=NOON) == [secret]
    found = encrypted_content.secret_in(read(notification))
    assert found is not None
    assert found.data == SECRET.data
    assert rooms.find_rooms()["ops"].target() == target
    assert reencrypt() == totals("new", is_changed=False)


def test_value_of_an_unlisted_key_is_reported(
    stored: tuple[ObjectId, ObjectId, str], settings: Any
) -> None:
    settings.FIELD_ENCRYPTION_KEYS = NEW
    with pytest.raises(CommandError, match="7 values can't be decrypted"):
        reencrypt()
    assert encryption.key_id_of(read(stored[1])["encrypted_content"]) == "old"
