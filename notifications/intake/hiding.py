"""What of a new notification is stored as dots, and sealed beside it.

Where a type has secrets, or the type whose template is used: the variables it calls so, whatever
repeats them, and words that the app gives itself, for any part of those may be the secret.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from domain.content import Attachment, Content, SensitiveContent

from .. import secrecy, types
from ..types import MASK, NotificationKind
from .requests import ContentRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Content and data as they may be stored and shown, and what they hide."""

    content: Content
    data: Mapping[str, Any]
    secret: SensitiveContent | None = None


def hide(
    content: Content, *, given: ContentRequest, data: Mapping[str, Any], kind: NotificationKind
) -> Hidden:
    """Return a composed content and its data without secrets, and those; None if there are none."""
    names = kind.sensitive_variables | types.secret_names(content.template_id)
    if not names:
        return Hidden(content=content, data=data)
    values = secrecy.values(data, names)
    shown = {**_by_value(content, names, values), **_own_words(content, given)}
    hidden = {name: value for name, value in shown.items() if value != getattr(content, name)}
    masked = secrecy.masked(data, names, values)
    if not hidden and masked == data:
        return Hidden(content=content, data=data)
    secret = SensitiveContent(
        data=data,
        content={name: _plain(getattr(content, name)) for name in hidden},
        values=values,
        has_own_words=given.body is not None or given.subject is not None,
    )
    return Hidden(content=replace(content, is_masked=True, **hidden), data=masked, secret=secret)


def _by_value(content: Content, names: Collection[str], values: Collection[str]) -> dict[str, Any]:
    """Return the fields that go along with the words, without what repeats a secret."""
    return {
        "image_url": _without(content.image_url, values),
        "deep_link": _without(content.deep_link, values),
        "reply_to": _without(content.reply_to, values),
        "payload": content.payload and secrecy.masked(content.payload, names, values),
        "attachments": tuple(_attachment(one, values) for one in content.attachments),
    }


def _own_words(content: Content, given: ContentRequest) -> dict[str, Any]:
    """Return the fields that the app's own words stand in, with nothing of them left."""
    fields: dict[str, Any] = {}
    if given.subject is not None or (given.body is not None and content.subject is not None):
        # Without a subject of its own it is the first line of the body.
        fields["subject"] = MASK
    if given.body is not None:
        fields |= {"body": MASK, "deep_link": None}
        fields["payload"] = content.payload and secrecy.all_masked(content.payload)
    return fields


def _attachment(one: Attachment, values: Collection[str]) -> Attachment:
    url, filename = secrecy.without(one.url, values), secrecy.without(one.filename, values)
    return replace(one, url=url, filename=filename)


def _without(text: str | None, values: Collection[str]) -> str | None:
    return text if text is None else secrecy.without(text, values)


def _plain(value: Any) -> Any:
    """Return a value as it is sealed."""
    return [asdict(one) for one in value] if isinstance(value, tuple) else value
