"""The presentation of a mail to one of its recipients."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...log import Record
from ..base import Attachment, DisplayedMessage
from .validation import HTML, PLAIN


def addressees(body: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the address and personalization of each recipient. The body may be invalid."""
    for personalization in dicts(body, "personalizations"):
        for name in ("to", "cc", "bcc"):
            for person in dicts(personalization, name):
                if isinstance(person.get("email"), str):
                    yield person["email"], personalization


def recipients(body: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each recipient's address and custom arguments, including those of the whole mail."""
    for address, personalization in addressees(body):
        arguments: dict[str, Any] = {}
        for given in (body.get("custom_args"), personalization.get("custom_args")):
            arguments |= given if isinstance(given, dict) else {}
        yield address, arguments


def dicts(parent: Any, name: str) -> list[dict[str, Any]]:
    """Return the JSON objects in the list ``parent[name]``; empty if it is no list."""
    listed = parent.get(name) if isinstance(parent, dict) else None
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def display(record: Record, *, to: int) -> DisplayedMessage:
    """Return a mail as recipient number ``to`` sees it, with that recipient's substitutions."""
    body = record.json()
    everybody = [personalization for _, personalization in addressees(body)]
    own = everybody[to if to < len(everybody) else 0]
    parts = {part["type"]: part["value"] for part in reversed(body.get("content") or [])}
    tags = own.get("substitutions") or {}
    return DisplayedMessage(
        sender=_person(own.get("from") or body["from"]),
        recipients=record.recipients,
        title=_substitute(own.get("subject") or body.get("subject") or "", tags),
        text=_substitute(parts.get(PLAIN, ""), tags),
        html=_substitute(parts.get(HTML, ""), tags),
        facts=tuple(_headers(body, own, tags)),
        attachments=tuple(_attachment(attachment) for attachment in body.get("attachments") or []),
    )


def _headers(
    body: Mapping[str, Any], own: Mapping[str, Any], tags: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if body.get("reply_to"):
        yield "Reply-To", _substitute(_person(body["reply_to"]), tags)
    yield from {**(body.get("headers") or {}), **(own.get("headers") or {})}.items()


def _substitute(text: str, tags: Mapping[str, str]) -> str:
    """Replace all tags in one pass, so that tags in replacements stay."""
    if not tags:
        return text
    longest_first = sorted(tags, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda found: tags[found[0]], text)


def _person(person: Mapping[str, Any]) -> str:
    name, email = person.get("name"), str(person["email"])
    return f"{name} <{email}>" if name else email


def _attachment(attachment: Mapping[str, Any]) -> Attachment:
    content = str(attachment["content"])
    # In base64, four characters encode three bytes.
    size = len(content) // 4 * 3 - content.count("=")
    return Attachment(name=attachment["filename"], kind=attachment.get("type") or "", size=size)
