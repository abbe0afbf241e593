"""Stored recipients and contents that lack fields."""

from typing import Any

from domain.content import Content, Recipient
from notifications.store.reading import content_of, recipient_of


def test_stored_recipient_and_content_can_be_empty() -> None:
    stored: Any = {"recipient": {}, "content": {}}
    assert recipient_of(stored) == Recipient()
    assert content_of(stored) == Content()
    stored["recipient"] = {"device_ids": ["a", "b"]}
    assert recipient_of(stored).device_ids == ("a", "b")
