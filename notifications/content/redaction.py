"""Redaction of sensitive values in stored data, content, and provider responses."""

import html
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from domain.content import Attachment, Content, SensitiveContent
from domain.errors import ProviderError, ProviderResponse
from providers.contract import SendResult

from ..catalog import types
from ..catalog.types import MASK, TypeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """Content and data as they may be stored and shown, and what they hide."""

    content: Content
    data: Mapping[str, Any]
    secret: SensitiveContent | None = None


def redact(
    content: Content,
    *,
    has_own_subject: bool,
    has_own_body: bool,
    data: Mapping[str, Any],
    kind: TypeConfig,
) -> Redacted:
    """Return a composed content and its data without secrets, and those; None if there are none.

    ``has_own_subject`` and ``has_own_body`` say which of them the request gave itself.
    """
    names = kind.sensitive_variables | types.sensitive_variables(content.template_id)
    if not names:
        return Redacted(content=content, data=data)
    values = find_secrets(data, names)
    shown = {
        **_by_value(content, names, values),
        **_own_words(content, has_own_subject, has_own_body),
    }
    hidden = {name: value for name, value in shown.items() if value != getattr(content, name)}
    masked = mask(data, names, values)
    if not hidden and masked == data:
        return Redacted(content=content, data=data)
    secret = SensitiveContent(
        data=data,
        content={name: _plain(getattr(content, name)) for name in hidden},
        secrets=values,
        has_inline_content=has_own_body or has_own_subject,
    )
    return Redacted(content=replace(content, is_masked=True, **hidden), data=masked, secret=secret)


def _by_value(content: Content, names: Collection[str], values: Collection[str]) -> dict[str, Any]:
    """Return the fields that go along with the words, without what repeats a secret."""
    return {
        "image_url": _without(content.image_url, values),
        "deep_link": _without(content.deep_link, values),
        "reply_to": _without(content.reply_to, values),
        "payload": content.payload and mask(content.payload, names, values),
        "attachments": tuple(_attachment(one, values) for one in content.attachments),
    }


def _own_words(content: Content, has_own_subject: bool, has_own_body: bool) -> dict[str, Any]:
    """Return the fields that the app's own words stand in, with nothing of them left."""
    fields: dict[str, Any] = {}
    if has_own_subject or (has_own_body and content.subject is not None):
        # Without a subject of its own it is the first line of the body.
        fields["subject"] = MASK
    if has_own_body:
        fields |= {"body": MASK, "deep_link": None}
        fields["payload"] = content.payload and all_masked(content.payload)
    return fields


def _attachment(one: Attachment, values: Collection[str]) -> Attachment:
    url, filename = without(one.url, values), without(one.filename, values)
    return replace(one, url=url, filename=filename)


def _without(text: str | None, values: Collection[str]) -> str | None:
    return text if text is None else without(text, values)


def _plain(value: Any) -> Any:
    """Return a value as it is sealed."""
    return [asdict(one) for one in value] if isinstance(value, tuple) else value


MIN_LENGTH = 4
"""A shorter value is hidden by its name alone: it stands in every other text by chance."""
MIN_CUT = 3
"""So much of a value at the end of a text that was cut is hidden as well."""
WITHHELD = "[not kept: it may repeat a secret]"
Outcome = SendResult | ProviderError


def find_secrets(data: Mapping[str, Any], names: Collection[str]) -> tuple[str, ...]:
    """Return the secrets that stand under these names, at any depth, the longest first."""
    found = {text for text in _under(data, names, is_secret=False) if len(text) >= MIN_LENGTH}
    return tuple(sorted(found - {MASK}, key=lambda text: (-len(text), text)))


def mask(
    data: Mapping[str, Any], names: Collection[str], secrets: Collection[str] | None = None
) -> dict[str, Any]:
    """Return data without what stands under these names, or repeats it; ``secrets`` if known."""
    known = find_secrets(data, names) if secrets is None else secrets
    return {name: _masked(value, name, names, known) for name, value in data.items()}


def all_masked(value: Any) -> Any:
    """Return a value of the same shape in which every text and number is hidden."""
    if isinstance(value, Mapping):
        return {name: all_masked(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [all_masked(one) for one in value]
    return value if value is None or isinstance(value, bool) else MASK


def without(text: str, secrets: Collection[str]) -> str:
    """Return a text without these secrets, as they are or as JSON, HTML and links write them."""
    for secret in secrets:
        for form in _forms(secret):
            text = text.replace(form, MASK)
    return text


def mask_response(outcome: Outcome, secret: SensitiveContent | None) -> Outcome:
    """Return what a provider answered to a message without what it repeats of its secret."""
    if secret is None:
        return outcome
    if isinstance(outcome, SendResult):
        return replace(outcome, response=_unquoted(outcome.response, secret))
    if outcome.response is not None:
        outcome.response = _unquoted(outcome.response, secret)
    outcome.reason = without(outcome.reason, secret.secrets)
    outcome.args = (outcome.reason,)
    return outcome


def _unquoted(answer: ProviderResponse, secret: SensitiveContent) -> ProviderResponse:
    if secret.has_inline_content:
        # Which part of the words is the secret, nobody but the app knows.
        return replace(answer, excerpt=WITHHELD if answer.excerpt else "")
    excerpt = without(answer.excerpt, secret.secrets)
    cut = max((_cut(excerpt, value) for value in secret.secrets), default=0)
    return replace(answer, excerpt=excerpt[:-cut] + MASK if cut else excerpt)


def _cut(text: str, secret: str) -> int:
    """Return how much of a secret stands at the end of a text that was cut in the middle of it."""
    sizes = range(len(secret) - 1, MIN_CUT - 1, -1)
    return next((size for size in sizes if text.endswith(secret[:size])), 0)


def _forms(secret: str) -> Iterator[str]:
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    # The widest first: what is left of a form after another was hidden in it would stay.
    yield from dict.fromkeys(
        (
            json.dumps(secret)[1:-1],
            in_json.replace("/", "\\/"),
            in_json,
            html.escape(secret),
            quote(secret, safe=""),
            quote(secret),
            secret,
        )
    )


def _under(value: Any, names: Collection[str], *, is_secret: bool) -> Iterator[str]:
    """Yield every text and number under one of these names."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _under(one, names, is_secret=is_secret or name in names)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _under(one, names, is_secret=is_secret)
    elif is_secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _masked(value: Any, name: str, names: Collection[str], secrets: Collection[str]) -> Any:
    if name in names:
        return MASK
    if isinstance(value, Mapping):
        return {inner: _masked(one, inner, names, secrets) for inner, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(one, "", names, secrets) for one in value]
    if isinstance(value, str):
        return without(value, secrets)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return MASK if is_number and str(value) in secrets else value
