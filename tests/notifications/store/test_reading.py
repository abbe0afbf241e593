"""Stored recipients and contents that lack fields."""

from typing import Any

from domain.content import Content, Recipient
from domain.wait_reasons import WaitReason
from notifications.store.reading import content_of, holds_of, recipient_of
from tests.support.factories.notifications import NOON


def test_stored_recipient_and_content_can_be_empty() -> None:
    stored: Any = {"recipient": {}, "content": {}}
    assert recipient_of(stored) == Recipient()
    assert content_of(stored) == Content()
    stored["recipient"] = {"device_ids": ["a", "b"]}
    assert recipient_of(stored).device_ids == ("a", "b")


def test_outage_of_a_newer_version_is_an_unavailable_provider() -> None:
    """The delivery is claimed, with the others of its batch."""
    hold = {"reason": "solar_flare", "provider": "smtp", "since": NOON}
    stored: Any = {"holds": [hold]}
    (found,) = holds_of(stored)
    assert (found.reason, found.provider) == (WaitReason.PROVIDER_UNAVAILABLE, "smtp")
