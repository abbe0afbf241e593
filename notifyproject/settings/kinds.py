"""What the text of an environment variable may be, and the value that it stands for. Pure.

No message of this module has the text, which may be a secret.
"""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from domain.prices import parse_prices

from . import safety, spelling
from .safety import Plain, SecretRule, UrlRule

T = TypeVar("T")
_JSON = re.compile(r"[\ufeff\s]*['\"]?\s*\{(?!\{)")
"""The beginning of JSON, also behind what the reader of a document removes."""
_TOKEN = re.compile(r"[\x21-\x7e]+")
_KEY_ID = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)
_ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


class RefusedError(ValueError):
    """A text isn't of the kind. The message says why, without the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """What a text may be."""

    expected: str
    """What the text must be, as in "expected a text"."""
    convert: Callable[[str], T]
    """Returns the value. Raises RefusedError, or ValueError for what isn't expected."""
    empty: T
    """The value of a variable without a text."""
    leftover: Callable[[str], str | None] = spelling.leftover_problem
    """Returns what is left of a file, a shell, or a template in the text, or None."""
    secret: SecretRule | None = None
    url: UrlRule | None = None
    words: tuple[str, ...] = ()
    """All texts, if there are few."""

    def read(self, text: str) -> T:
        """Return the value of a text. Raises RefusedError."""
        if problem := self.leftover(text):
            raise RefusedError(problem)
        try:
            return self.convert(text)
        except RefusedError:
            raise
        except ValueError:
            raise RefusedError(f"expected {self.expected}") from None


def split_list(text: str) -> list[str]:
    """Split a list that is separated by commas."""
    return [item for part in text.split(",") if (item := part.strip())]


def whole(low: int, high: int | None = None) -> Kind[int]:
    """Return the kind of a whole number with limits."""
    limited = Annotated[int, msgspec.Meta(ge=low, le=high)]
    expected = f"a whole number{_range(low, high)}, without a unit"
    return Kind(expected=expected, convert=_converter(limited), empty=0)


def optional_whole(low: int, high: int) -> Kind[int | None]:
    """Return the kind of a whole number with limits, or of none: no text isn't zero."""
    kind = whole(low, high)
    return Kind(expected=kind.expected, convert=kind.convert, empty=None)


def number(low: float, high: float) -> Kind[float]:
    """Return the kind of a number with limits."""
    limited = Annotated[float, msgspec.Meta(ge=low, le=high)]
    expected = f"a number{_range(low, high)}, without a unit"
    return Kind(expected=expected, convert=_converter(limited), empty=0.0)


def choice(*words: str) -> Kind[str]:
    """Return the kind of a text that is one of these words."""

    def convert(text: str) -> str:
        if text not in words:
            raise ValueError("another word")
        return text

    return Kind(expected=f"one of {' | '.join(words)}", convert=convert, empty="", words=words)


def switch() -> Kind[bool]:
    """Return the kind of a text that is on or off."""
    words = {"on": True, "off": False}

    def convert(text: str) -> bool:
        if text not in words:
            raise ValueError("another word")
        return words[text]

    return Kind(expected="on | off", convert=convert, empty=False, words=tuple(words))


def names(*known: str, more: str, refused: Mapping[str, str]) -> Kind[tuple[str, ...]]:
    """Return the kind of an ordered list of some of these names, each at most once.

    ``refused`` has the reasons why others may not be in it.
    """

    def convert(text: str) -> tuple[str, ...]:
        found = tuple(split_list(text))
        if reason := next((refused[name] for name in found if name in refused), None):
            raise RefusedError(reason)
        if not found or len({*found}) < len(found) or not {*found} <= {*known}:
            raise ValueError("another name")
        return found

    return Kind(expected=f"some of {', '.join(known)}, or {more}", convert=convert, empty=())


def text(pattern: str = r"(?s:.*)", expected: str = "a text") -> Kind[str]:
    """Return the kind of a text that has, as a whole, a form."""
    return Kind(expected=expected, convert=lambda found: _match(pattern, found), empty="")


def items(
    pattern: str = r".*",
    expected: str = "a list",
    *,
    split: Callable[[str], list[str]] = split_list,
) -> Kind[tuple[str, ...]]:
    """Return the kind of a list whose whole text has a form."""
    return Kind(
        expected=expected, convert=lambda found: tuple(split(_match(pattern, found))), empty=()
    )


def token(*, min_length: int, is_issued: bool = False, start_length: int = 0) -> Kind[str]:
    """Return the kind of a secret of ASCII without spaces, as in a header.

    ``start_length`` is refused anywhere, and ``min_length`` on a server.
    """

    def convert(found: str) -> str:
        if len(found) < start_length:
            raise ValueError("short")
        return _token(found)

    return Kind(
        expected=f"a text{_range(start_length, None)} characters",
        convert=convert,
        empty="",
        secret=SecretRule(min_length=min_length, is_issued=is_issued),
    )


def keys(*, min_length: int) -> Kind[Mapping[str, bytes]]:
    """Return the kind of a list of secret keys, each ``id:base64`` with ``min_length`` bytes."""
    return Kind(
        expected="id:base64, separated by commas",
        convert=_keys,
        empty={},
        secret=SecretRule(min_length=min_length),
    )


def password() -> Kind[str]:
    """Return the kind of a secret that another system chose, of any characters."""
    return Kind(
        expected="a text without blanks at its ends",
        convert=str,
        empty="",
        leftover=spelling.ends_problem,
        secret=SecretRule(min_length=1, is_issued=True),
    )


def document() -> Kind[str]:
    """Return the kind of a secret that is JSON, or the path of a file with it."""

    def leftover(found: str) -> str | None:
        return None if _JSON.match(found) else spelling.leftover_problem(found)

    return Kind(
        expected="JSON, or the path of a file with it",
        convert=str,
        empty="",
        leftover=leftover,
        secret=SecretRule(min_length=1, is_issued=True),
    )


def url(plain: Plain, *schemes: str) -> Kind[str]:
    """Return the kind of one URL, https or http unless the schemes are others."""
    rule = UrlRule(plain=plain, schemes=schemes or ("https", "http"))

    def convert(found: str) -> str:
        if problem := safety.url_form_problem(rule, found):
            raise RefusedError(problem)
        return found

    return Kind(expected="a URL", convert=convert, empty="", url=rule)


def origins() -> Kind[frozenset[str]]:
    """Return the kind of a list of origins of web pages."""

    def convert(found: str) -> frozenset[str]:
        parsed = split_list(found.lower())
        if not all(_ORIGIN.fullmatch(origin) for origin in parsed):
            raise ValueError("no origin")
        return frozenset(parsed)

    return Kind(
        expected=(
            "origins such as https://app.example.com, with a port if it is not the default one, "
            "and without a path"
        ),
        convert=convert,
        empty=frozenset(),
        url=UrlRule(plain=Plain.LOOPBACK),
    )


def prices() -> Kind[Mapping[str, Decimal]]:
    """Return the kind of a list of ``country:price``."""
    return Kind(
        expected="country:price, separated by commas, each country once",
        convert=parse_prices,
        empty={},
    )


def group_roles() -> Kind[Mapping[str, str]]:
    """Return the kind of a list of ``group:role``."""

    def convert(found: str) -> dict[str, str]:
        roles: dict[str, str] = {}
        for position, item in enumerate(split_list(found), start=1):
            # The name of a group may contain a colon, that of a role doesn't.
            group, _, role = (part.strip() for part in item.rpartition(":"))
            if not group or not role or group in roles:
                raise RefusedError(
                    f"item {position} is not group:role with a group that occurs once"
                )
            roles[group] = role
        return roles

    return Kind(expected="group:role, separated by commas", convert=convert, empty={})


def numbers(kind: Kind[T], *, defaults: str) -> Kind[Mapping[str, T]]:
    """Return the kind of a list of ``name:number``, with the names of the defaults."""

    def parse(found: str) -> dict[str, T]:
        pairs = [item.partition(":") for item in split_list(found)]
        parsed = {name: kind.convert(text) for name, _, text in pairs}
        if len(parsed) < len(pairs):
            raise ValueError("a name twice")
        return parsed

    known = parse(defaults)

    def convert(found: str) -> Mapping[str, T]:
        given = parse(found)
        if not given.keys() <= known.keys():
            raise ValueError("another name")
        return known | given

    return Kind(
        expected=(
            f"name:number, separated by commas; each name, of {', '.join(known)}, once; "
            f"{kind.expected}"
        ),
        convert=convert,
        empty=known,
    )


def _converter(hint: Any) -> Callable[[str], Any]:
    return lambda found: msgspec.convert(found, hint, strict=False)


def _match(pattern: str, found: str) -> str:
    if not re.fullmatch(pattern, found):
        raise ValueError("another form")
    return found


def _token(found: str) -> str:
    if not _TOKEN.fullmatch(found):
        raise RefusedError("has a space, or a character that isn't ASCII")
    return found


def _keys(found: str) -> dict[str, bytes]:
    parsed: dict[str, bytes] = {}
    for position, item in enumerate(split_list(_token(found)), start=1):
        key_id, _, encoded = item.partition(":")
        try:
            secret = base64.b64decode(encoded, validate=True)
        except ValueError:
            secret = b""
        if not _KEY_ID.fullmatch(key_id) or not secret or key_id in parsed:
            raise RefusedError(
                f"key {position} is not id:base64 with a unique id of lowercase letters, digits, "
                "- and _"
            )
        parsed[key_id] = secret
    return parsed


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low else ""
