"""What of a notification is secret, and how that looks wherever it may not be read. Pure.

Which variables are, the type says, and the type whose template it is. A secret is hidden by its
name, however deep it stands, and by its value wherever else that is repeated.
"""

import html
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from domain.content import SensitiveContent
from domain.errors import ProviderError, ProviderResponse
from providers.contract import SendResult

from .types import MASK

MIN_LENGTH = 4
"""A shorter value is hidden by its name alone: it stands in every other text by chance."""
MIN_CUT = 3
"""So much of a value at the end of a text that was cut is hidden as well."""
WITHHELD = "[not kept: it may repeat a secret]"
Outcome = SendResult | ProviderError


def values(data: Mapping[str, Any], names: Collection[str]) -> tuple[str, ...]:
    """Return the secrets that stand under these names, at any depth, the longest first."""
    found = {text for text in _under(data, names, is_secret=False) if len(text) >= MIN_LENGTH}
    return tuple(sorted(found - {MASK}, key=lambda text: (-len(text), text)))


def masked(
    data: Mapping[str, Any], names: Collection[str], secrets: Collection[str] | None = None
) -> dict[str, Any]:
    """Return data without what stands under these names, or repeats it; ``secrets`` if known."""
    known = values(data, names) if secrets is None else secrets
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


def without_quotes(outcome: Outcome, secret: SensitiveContent | None) -> Outcome:
    """Return what a provider answered to a message without what it repeats of its secret."""
    if secret is None:
        return outcome
    if isinstance(outcome, SendResult):
        return replace(outcome, answer=_unquoted(outcome.answer, secret))
    if outcome.answer is not None:
        outcome.answer = _unquoted(outcome.answer, secret)
    outcome.reason = without(outcome.reason, secret.values)
    outcome.args = (outcome.reason,)
    return outcome


def _unquoted(answer: ProviderResponse, secret: SensitiveContent) -> ProviderResponse:
    if secret.has_own_words:
        # Which part of the words is the secret, nobody but the app knows.
        return replace(answer, excerpt=WITHHELD if answer.excerpt else "")
    excerpt = without(answer.excerpt, secret.values)
    cut = max((_cut(excerpt, value) for value in secret.values), default=0)
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
