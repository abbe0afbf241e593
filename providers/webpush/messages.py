"""Builds the headers and the text of a push, as declarative web push.

A browser that knows the format shows it without code of the page. In others, the service worker of
``clients/web/push`` reads the same text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from domain.content import NO_SOUND, InterruptionLevel, PushOptions
from domain.errors import FailureCode, PermanentError
from domain.states import Priority
from domain.web_push import topic

from ..contract import SendRequest
from .encryption import CONTENT_ENCODING

FORMAT = 8030
"""The number by which a browser knows the format."""
MAX_TTL = timedelta(days=28)
"""The longest that every push service keeps a message. Mozilla's takes 30 days."""
MAX_TEXT = 2_500
"""Bytes of the text. Firefox on Android once took 2,744 bytes of data."""
URGENCY: Mapping[Priority, str] = {
    Priority.CRITICAL: "high",
    Priority.HIGH: "high",
    Priority.NORMAL: "normal",
    Priority.LOW: "low",
}
"""Only ``high`` wakes a device in battery saver. An iPhone shows others later."""
MICROSOFT = "notify.windows.com"
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptAddress:
    """Where the service worker reports what became of a push."""

    url: str
    token: str


def build_headers(request: SendRequest, *, host: str, now: datetime) -> dict[str, str]:
    """Return the headers of a push, apart from its authorization."""
    left = MAX_TTL if request.expires_at is None else request.expires_at - now
    seconds = int(min(max(left, timedelta(0)), MAX_TTL).total_seconds())
    headers = {
        "TTL": str(seconds),
        "Urgency": URGENCY[request.priority],
        "Content-Type": "application/octet-stream",
        "Content-Encoding": CONTENT_ENCODING,
    }
    if request.notification_id:
        headers["Topic"] = topic(request.notification_id)
    if host.endswith(MICROSOFT):
        # Without it, Microsoft refuses a TTL of zero.
        headers["X-WNS-Cache-Policy"] = "cache" if seconds else "no-cache"
    return headers


def build_text(request: SendRequest, *, home: str, receipts: ReceiptAddress) -> bytes:
    """Return the text of a push, with a shorter body if it is too long.

    ``home`` is opened by a push without a link to a page. Raises PermanentError.
    """
    message = request.message
    title, body = message.subject or message.text, message.text if message.subject else ""
    if not title:
        raise PermanentError(
            "A browser shows every push, and this one has no text.", code=FailureCode.REJECTED
        )
    link = message.deep_link or ""
    notification: dict[str, Any] = {
        "title": title,
        "navigate": link if link.lower().startswith("https://") else home,
        **_presentation(request),
        "data": {
            "notification_id": request.notification_id,
            "receipts": receipts.url,
            "receipt_token": receipts.token,
            **({"deep_link": link} if link else {}),
            **({"payload": message.payload} if message.payload else {}),
        },
    }
    text = _encode(notification | ({"body": body} if body else {}))
    if len(text) <= MAX_TEXT:
        return text
    room = MAX_TEXT - len(_encode(notification | {"body": _ELLIPSIS}))
    if not body or room < 0:
        raise PermanentError(
            f"The message exceeds {MAX_TEXT:,} bytes without its body.", code=FailureCode.TOO_LARGE
        )
    return _encode(notification | {"body": f"{_cut(body, room)}{_ELLIPSIS}"})


def _presentation(request: SendRequest) -> dict[str, Any]:
    options = request.message.push or PushOptions()
    is_quiet = (
        request.priority is Priority.LOW or options.interruption_level is InterruptionLevel.PASSIVE
    )
    is_silent = is_quiet if options.sound is None else options.sound == NO_SOUND
    found: dict[str, Any] = {}
    if request.notification_id:
        found["tag"] = f"{request.notification_id}-push"
    if is_silent:
        found["silent"] = True
    if options.badge is not None:
        found["app_badge"] = str(options.badge)
    if request.message.image_url:
        found["image"] = request.message.image_url
    return found


def _encode(notification: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode({"web_push": FORMAT, "notification": notification})
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PermanentError(
            "A payload value can't be encoded as JSON.", code=FailureCode.RENDER_FAILED
        ) from error


def _cut(text: str, room: int) -> str:
    """Return the longest beginning of a text that takes at most ``room`` bytes in JSON."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(msgspec.json.encode(text[:middle])) - 2 <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip()
