"""Masks sensitive values in stored data, in content, and in providers' responses."""

import html
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any
from urllib.parse import quote

from domain.content import Content, SensitiveContent
from domain.errors import ProviderError, ProviderResponse
from providers.contract import SendResult

from ..catalog import types
from ..catalog.types import MASK, TypeConfig

MIN_SECRET_LENGTH = 4  # Shorter values are masked by name only: they occur in other texts by chance
MAX_SECRETS = 100
"""Sensitive values that are searched for in other texts. With more, every text and number counts as
one: the search would take time by the product of both."""
MIN_PARTIAL_LENGTH = 3  # Characters of a value at the end of a truncated text that are masked too
WITHHELD = "[not kept: it may repeat a secret]"
"""Stored instead of a provider's response that may repeat sensitive content."""
SendOutcome = SendResult | ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """Content and data with sensitive values masked, and the sensitive values."""

    content: Content
    data: Mapping[str, Any]
    secret: SensitiveContent | None = None


def redact(
    content: Content,
    *,
    has_own_subject: bool,
    has_own_body: bool,
    data: Mapping[str, Any],
    type_config: TypeConfig,
) -> Redacted:
    """Mask the sensitive values in content and data before they are stored.

    A subject or body that the request itself contains is masked as a whole.
    """
    names = type_config.sensitive_variables | types.sensitive_variables(content.template_id)
    if not names:
        return Redacted(content=content, data=data)
    values = find_secrets(data, names)
    masker = _Masker(names, values)
    masked_fields = {
        **_mask_fields(content, masker),
        **_mask_own_words(content, has_own_subject, has_own_body),
    }
    redacted_fields = {
        name: value for name, value in masked_fields.items() if value != getattr(content, name)
    }
    masked = masker.mask_object(data)
    if not redacted_fields and masked == data:
        return Redacted(content=content, data=data)
    originals = {name: getattr(content, name) for name in redacted_fields}
    if "attachments" in originals:
        originals["attachments"] = [asdict(attachment) for attachment in content.attachments]
    secret = SensitiveContent(
        data=data,
        content=originals,
        secrets=values,
        has_inline_content=has_own_body or has_own_subject,
    )
    return Redacted(
        content=replace(content, is_masked=True, **redacted_fields), data=masked, secret=secret
    )


def _mask_fields(content: Content, masker: "_Masker") -> dict[str, Any]:
    clean = masker.clean
    return {
        "image_url": content.image_url and clean(content.image_url),
        "deep_link": content.deep_link and clean(content.deep_link),
        "reply_to": content.reply_to and clean(content.reply_to),
        "payload": content.payload and masker.mask_object(content.payload),
        "attachments": tuple(
            replace(attachment, url=clean(attachment.url), filename=clean(attachment.filename))
            for attachment in content.attachments
        ),
    }


def _mask_own_words(content: Content, has_own_subject: bool, has_own_body: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if has_own_subject or (has_own_body and content.subject is not None):
        # A derived subject is the first line of the body.
        fields["subject"] = MASK
    if has_own_body:
        fields |= {"body": MASK, "deep_link": None}
        fields["payload"] = content.payload and mask_all(content.payload)
    return fields


def find_secrets(data: Mapping[str, Any], names: Collection[str]) -> tuple[str, ...]:
    """Return the values of variables with these names, at any depth, longest first."""
    found = {
        text
        for text in _values_under(data, names, is_secret=False)
        if len(text) >= MIN_SECRET_LENGTH
    }
    return tuple(sorted(found - {MASK}, key=lambda text: (-len(text), text)))


def mask(data: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Mask the values under these names, and wherever they occur."""
    return _Masker(names, find_secrets(data, names)).mask_object(data) if names else dict(data)


def mask_all(value: Any) -> Any:
    """Return a value of the same structure in which every text and number is masked."""
    if isinstance(value, Mapping):
        return {name: mask_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_all(item) for item in value]
    return value if value is None or isinstance(value, bool) else MASK


def remove_secrets(text: str, secrets: Collection[str]) -> str:
    """Mask these values in a text, also as encoded in JSON, HTML, or URLs."""
    return _Masker((), secrets).clean(text)


def remove_secrets_from(data: Mapping[str, Any], secret: SensitiveContent) -> dict[str, Any]:
    """Mask the sensitive values in an object; all of it if the request had a text of its own."""
    if secret.has_inline_content:
        return dict(mask_all(data))
    return _Masker((), secret.secrets).mask_object(data)


def mask_response(outcome: SendOutcome, secret: SensitiveContent | None) -> SendOutcome:
    """Mask the sensitive values that a provider's response contains."""
    if secret is None:
        return outcome
    if isinstance(outcome, SendResult):
        return replace(outcome, response=_mask_excerpt(outcome.response, secret))
    if outcome.response is not None:
        outcome.response = _mask_excerpt(outcome.response, secret)
    outcome.reason = remove_secrets(outcome.reason, secret.secrets)
    outcome.args = (outcome.reason,)
    return outcome


def _mask_excerpt(answer: ProviderResponse, secret: SensitiveContent) -> ProviderResponse:
    if secret.has_inline_content:
        # Only the client knows which part of its own text is sensitive.
        return replace(answer, excerpt=WITHHELD if answer.excerpt else "")
    excerpt = remove_secrets(answer.excerpt, secret.secrets)
    # The end of a truncated text may be the beginning of a value.
    partial_lengths = (
        size
        for value in secret.secrets
        for size in range(MIN_PARTIAL_LENGTH, min(len(value), len(excerpt) + 1))
        if excerpt.endswith(value[:size])
    )
    if length := max(partial_lengths, default=0):
        excerpt = excerpt[:-length] + MASK
    return replace(answer, excerpt=excerpt)


def _encodings_of(secret: str) -> Iterable[str]:
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    # Widest first: masking a shorter form inside a wider one would leave the rest.
    return dict.fromkeys(
        [
            json.dumps(secret)[1:-1],
            in_json.replace("/", "\\/"),
            in_json,
            html.escape(secret),
            quote(secret, safe=""),
            quote(secret),
            secret,
        ]
    )


def _values_under(value: Any, names: Collection[str], *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values_under(item, names, is_secret=is_secret or name in names)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values_under(item, names, is_secret=is_secret)
    elif is_secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


class _Masker:
    """Masks values wherever they occur, and what has one of these names.

    The encodings of the values are made once for all texts.
    """

    def __init__(self, names: Collection[str], secrets: Collection[str]) -> None:
        self._names = names
        self._masks_all = len(secrets) > MAX_SECRETS
        self._secrets = frozenset(secrets)
        forms = () if self._masks_all else map(_encodings_of, secrets)
        self._forms = tuple(chain.from_iterable(forms))

    def clean(self, text: str) -> str:
        """Return a text without the values."""
        if self._masks_all:
            return MASK if text else text
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def mask_object(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object without the values, and without what has one of the names."""
        return {
            name: MASK if name in self._names else self._mask(value) for name, value in data.items()
        }

    def _mask(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.mask_object(value)
        if isinstance(value, list | tuple):
            return [self._mask(item) for item in value]
        if isinstance(value, str):
            return self.clean(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_secret = is_number and (self._masks_all or str(value) in self._secrets)
        return MASK if is_secret else value
