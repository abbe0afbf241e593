"""Builds FCM messages with settings for Android, Apple devices, and browsers."""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from domain.content import NO_SOUND, InterruptionLevel, PushOptions
from domain.errors import FailureCode, PermanentError
from domain.states import Priority
from domain.web_push import topic

from .. import http
from ..contract import Message, SendRequest

MAX_PAYLOAD = 4096
"""Maximum bytes of the keys and values that reach a device."""
MAX_TTL = timedelta(days=28)
RESERVED_KEYS = re.compile(r"from|message_type|(?:google|gcm)\..*", re.DOTALL)
URGENT = frozenset({Priority.CRITICAL, Priority.HIGH})
URGENCY: Mapping[Priority, str] = {
    Priority.CRITICAL: "high",
    Priority.HIGH: "high",
    Priority.NORMAL: "normal",
    Priority.LOW: "low",
}
"""Web Push urgency. Only ``high`` wakes a device in battery saver."""
DEFAULT_SOUND = "default"
PASSIVE = InterruptionLevel.PASSIVE
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
"""What every platform takes as the name of a notification."""


def build_payload(request: SendRequest, *, now: datetime) -> dict[str, Any]:
    """Return the arguments for pyfcm's ``parse_payload``. Raises PermanentError or ValueError."""
    message = request.message
    notification = _non_empty(title=message.subject, body=message.text, image=message.image_url)
    data = _data(request)
    # How long FCM may keep the message for an offline device; None for FCM's default.
    time_to_live: timedelta | None = None
    if request.expires_at is not None:
        time_to_live = min(max(request.expires_at - now, timedelta(0)), MAX_TTL)
    name = collapse_key(request)
    android = _android(request, name, time_to_live)
    apns = _apns(request, name, time_to_live, now)
    webpush = _webpush(request, name, time_to_live)
    platform_sizes = (
        _json_size(android.get("notification")),
        _json_size(apns.get("payload")),
        _json_size(webpush.get("notification")),
    )
    if _texts_size(data) + _texts_size(notification) + max(platform_sizes) > MAX_PAYLOAD:
        raise PermanentError(
            f"The message exceeds Firebase's limit of {MAX_PAYLOAD} bytes.",
            code=FailureCode.TOO_LARGE,
        )
    return {
        "fcm_token": request.recipient,
        **{f"notification_{name}": text for name, text in notification.items()},
        "data_payload": data,
        "android_config": android,
        "apns_config": apns,
        "webpush_config": webpush,
    }


def collapse_key(request: SendRequest) -> str:
    """Return the key by which a device replaces an earlier copy of a message, or an empty text."""
    if not request.notification_id:
        return ""
    name = f"{request.notification_id}-push"
    if _PLAIN_NAME.fullmatch(name):
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _data(request: SendRequest) -> dict[str, str]:
    payload = request.message.payload or {}
    for key in payload:
        if RESERVED_KEYS.fullmatch(key):
            raise PermanentError(
                f"Firebase reserves the payload key {http.redact(key)[:50]}.",
                code=FailureCode.REJECTED,
            )
    own_fields = _non_empty(
        reference=request.reference,
        notification_id=request.notification_id,
        deep_link=request.message.deep_link,
    )
    return {key: _to_string(value) for key, value in payload.items()} | own_fields


def _to_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError("a payload value can't be encoded as JSON") from error


def _android(request: SendRequest, name: str, time_to_live: timedelta | None) -> dict[str, Any]:
    android: dict[str, Any] = {"priority": "HIGH" if request.priority in URGENT else "NORMAL"}
    if time_to_live is not None:
        android["ttl"] = f"{int(time_to_live.total_seconds())}s"
    if not is_visible(request.message):
        # With any field of a notification, the system shows an empty one, and the app isn't called.
        return android
    notification: dict[str, Any] = {}
    if name:
        # Not collapse_key: FCM ignores it for messages with a notification, and keeps at most four
        # of them for an offline device.
        notification["tag"] = name
    sound = _sound(request)
    if sound == DEFAULT_SOUND:
        # For Android 7 and earlier; from Android 8 on, the app's channel decides.
        notification["default_sound"] = True
    elif sound is not None:
        # A resource of an Android app has no file extension.
        notification["sound"] = sound.partition(".")[0]
    if channel_id := _options(request).android_channel_id:
        notification["channel_id"] = channel_id
    if notification:
        android["notification"] = notification
    return android


def _options(request: SendRequest) -> PushOptions:
    return request.message.push or PushOptions()


def _sound(request: SendRequest) -> str | None:
    """Return the sound of a push, None for a silent one."""
    if not is_visible(request.message):
        return None
    options = _options(request)
    if options.sound is not None:
        return None if options.sound == NO_SOUND else options.sound
    is_quiet = request.priority is Priority.LOW or options.interruption_level is PASSIVE
    return None if is_quiet else DEFAULT_SOUND


def is_visible(message: Message) -> bool:
    """Return whether a device shows the message. Any other is data for the app alone."""
    return bool(message.subject or message.text)


def _apns(
    request: SendRequest, name: str, time_to_live: timedelta | None, now: datetime
) -> dict[str, Any]:
    message = request.message
    # Apple rejects an urgent message without visible content.
    is_urgent = request.priority in URGENT and is_visible(message)
    headers = {
        "apns-priority": "10" if is_urgent else "5",
        "apns-push-type": "alert" if is_visible(message) else "background",
    }
    aps: dict[str, Any] = {}
    options, sound = _options(request), _sound(request)
    if not is_visible(message):
        # Without it, an app in the background doesn't get the data.
        aps["content-available"] = 1
    else:
        level = options.interruption_level
        if level is None and request.priority is Priority.LOW and sound is None:
            level = PASSIVE
        if level is not None:
            aps["interruption-level"] = level.value
        if sound is not None:
            # Without one, an iPhone shows the message silently.
            aps["sound"] = sound
        if options.badge is not None:
            aps["badge"] = options.badge
    if time_to_live is not None:
        headers["apns-expiration"] = str(int((now + time_to_live).timestamp()))
    if name:
        headers["apns-collapse-id"] = name
    apns: dict[str, Any] = {"headers": headers, "payload": {"aps": aps}}
    if message.image_url and is_visible(message):
        # The app's extension downloads the image, and runs for mutable messages only.
        aps["mutable-content"] = 1
        apns["fcm_options"] = {"image": message.image_url}
    return apns


def _webpush(request: SendRequest, name: str, time_to_live: timedelta | None) -> dict[str, Any]:
    headers = {"Urgency": URGENCY[request.priority]}
    webpush: dict[str, Any] = {"headers": headers}
    if time_to_live is not None:
        headers["TTL"] = str(int(time_to_live.total_seconds()))
    if request.notification_id:
        # Firebase passes it on to a browser's own service, of which Apple's refuses some lengths.
        headers["Topic"] = topic(request.notification_id)
    if not is_visible(request.message):
        return webpush
    notification: dict[str, Any] = {"tag": name} if name else {}
    if _sound(request) is None:
        notification["silent"] = True
    if notification:
        webpush["notification"] = notification
    scheme, separator, rest = (request.message.deep_link or "").partition("://")
    if separator and scheme.lower() == "https":
        webpush["fcm_options"] = {"link": f"https://{rest}"}
    return webpush


def _non_empty(**texts: str | None) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _texts_size(texts: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(text.encode()) for key, text in texts.items())


def _json_size(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0
