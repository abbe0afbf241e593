"""The parts of a push that the outbox and the log show."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..base import DisplayedMessage

LONGEST_TITLE = 500
REFERENCES = ("reference", "notification_id")
"""Data keys that hold the service's reference."""


def recipient(message: Mapping[str, Any]) -> str:
    """Return the target of a message: a token or a topic."""
    for name in ("token", "topic"):
        found = message.get(name)
        if isinstance(found, str) and found:
            return f"/topics/{found.removeprefix('/topics/')}" if name == "topic" else found
    return ""


def references(message: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the service's references, from the data and the platforms' collapse keys."""
    data = _data(message)
    found = [
        *(data.get(name) for name in REFERENCES),
        _get(message, "android", "notification", "tag"),
        _get(message, "apns", "headers", "apns-collapse-id"),
        _get(message, "webpush", "notification", "tag"),
    ]
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str) and name))


def title(message: Mapping[str, Any]) -> str | None:
    """Return the title of a push."""
    text = _first_text(message, "title")
    return text[:LONGEST_TITLE] if text else None


def log_fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the log fields of a message, which may be invalid."""
    to = recipient(message)
    return {
        "title": title(message),
        "recipients": (to,) if to else (),
        "references": references(message),
    }


def display(message: Mapping[str, Any], *, project: str) -> DisplayedMessage:
    """Return a push as a device shows it."""
    return DisplayedMessage(
        sender=project,
        recipients=(recipient(message),),
        title=title(message) or "",
        text=_first_text(message, "body"),
        image=_first_text(message, "image") or _text(message, "apns", "fcm_options", "image"),
        link=_link(message),
        facts=tuple(_facts(message)),
    )


def _first_text(message: Mapping[str, Any], name: str) -> str:
    alert = _get(message, "apns", "payload", "aps", "alert")
    places = (
        message.get("notification"),
        _get(message, "android", "notification"),
        alert if isinstance(alert, dict) else {"body": alert},
        _get(message, "webpush", "notification"),
        _data(message),
    )
    for place in places:
        found = place.get(name) if isinstance(place, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""


def _link(message: Mapping[str, Any]) -> str:
    data = _data(message)
    return (
        _text(message, "webpush", "fcm_options", "link")
        or next((data[name] for name in ("deep_link", "link", "url") if data.get(name)), "")
        or _text(message, "android", "notification", "click_action")
    )


def _facts(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, path in {
        "Android priority": ("android", "priority"),
        "Android TTL": ("android", "ttl"),
        "Android channel": ("android", "notification", "channel_id"),
        "Replaces": ("android", "notification", "tag"),
        "APNs priority": ("apns", "headers", "apns-priority"),
        "APNs expiration": ("apns", "headers", "apns-expiration"),
        "Web TTL": ("webpush", "headers", "TTL"),
    }.items():
        if value := _text(message, *path):
            yield name, value
    for key, value in sorted(_data(message).items()):
        yield f"data.{key}", value


def _data(message: Mapping[str, Any]) -> Mapping[str, str]:
    found = message.get("data") or _get(message, "android", "data") or {}
    return found if isinstance(found, dict) else {}


def _text(message: Mapping[str, Any], *path: str) -> str:
    found = _get(message, *path)
    return found if isinstance(found, str) else ""


def _get(message: Mapping[str, Any], *path: str) -> Any:
    found: Any = message
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found
