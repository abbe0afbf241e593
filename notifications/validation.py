"""Validates fields: links, channels, and storable values, and collects problems."""

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from domain.channels import Channel
from domain.hosts import is_private_name
from domain.identifiers import find_identifier_fault
from domain.languages import is_known, normalize_language
from domain.states import Priority

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
FORBIDDEN_SCHEMES = frozenset(
    {
        "javascript",
        "data",
        "vbscript",
        "livescript",
        "file",
        "ftp",
        "about",
        "blob",
        "filesystem",
        "view-source",
        "jar",
        "resource",
        "res",
        "mhtml",
        "content",
        "intent",
        "chrome",
        "chrome-extension",
        "moz-extension",
        "feed",
        "wyciwyg",
    }
)
"""Schemes that run code, access local data, or wrap another URL, such as one of these."""
MAX_PORT = 65_535
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}", re.ASCII)
_NUMBER = re.compile(r"0x[0-9a-f]*|\d+", re.ASCII)
MAX_PROBLEMS = 100
MAX_KEY_LENGTH = 128
FREE_FORM = frozenset({"attributes", "data", "payload", "example_data"})
"""Fields whose keys the client chooses: they become field names in MongoDB."""
_LANGUAGE = re.compile(
    r"[A-Za-z]{1,8}([-_+]{1,2}#?[A-Za-z0-9]{1,11})*(\.[A-Za-z0-9-]+)?(@[A-Za-z0-9=;_-]+)?", re.ASCII
)
"""Also as systems write it: ``pt_BR.UTF-8@euro``, ``b+zh+Hant+TW``, ``sr_RS_#Latn``, ``C``."""
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INT, _MIN_INT = 2**63 - 1, -(2**63)
ALIASES = {channel.value.replace("_", "-"): channel for channel in Channel if "_" in channel}
ALL: Final = "all"
"""Selects every channel that can reach the recipient, also as the only element of a list."""
MIN_FUZZY = 4
"""Characters of a name that is compared loosely: of shorter ones, too many are alike."""


def enum_of(values: Iterable[str]) -> Meta:
    """Return the annotation of a text with these values, for the OpenAPI document.

    It refuses no other text. A later check does that, since it also accepts aliases and can say
    which values there are.
    """
    return Meta(extra_json_schema={"enum": [str(value) for value in values]})


ChannelName = Annotated[str, enum_of([*Channel, ALL])]
ChannelNames = list[ChannelName] | Literal["all"]
PriorityName = Annotated[str, enum_of(Priority)]


def has_control_characters(text: str) -> bool:
    """Return whether ``text`` contains a line break or another control character."""
    return _CONTROL.search(text) is not None


class InvalidLanguageError(ValueError):
    """A text that isn't a language tag."""


def parse_language(text: str) -> str:
    """Return a language tag as its standard writes it. Raises InvalidLanguageError."""
    if _LANGUAGE.fullmatch(text) is None or not is_known(text):
        raise InvalidLanguageError("Expected a language such as pt or pt-BR.")
    return normalize_language(text)


class InvalidLinkError(ValueError):
    """A link that is not allowed in a message."""


def check_image_url(url: str) -> str:
    """Return the URL if it is https on a public host. Raises InvalidLinkError."""
    check_public_url(url, schemes=("https",))
    return url


def check_deep_link(link: str) -> str:
    """Return the link if it leads into an app or to a public page. Raises InvalidLinkError."""
    scheme = _split(link)[0]
    if scheme in ("http", "https"):
        check_public_url(link, schemes=("https",))
    elif scheme in FORBIDDEN_SCHEMES:
        raise InvalidLinkError("Links of this scheme are not allowed.")
    return link


def check_page_url(url: str) -> None:
    """Raise InvalidLinkError unless a URL is https. Its host may be private: staff follow it."""
    scheme, host = _split(url)
    if scheme != "https" or host is None:
        raise InvalidLinkError("Expected a URL that begins with https://, without a user name.")


def check_public_url(url: str, *, schemes: tuple[str, ...]) -> None:
    """Raise InvalidLinkError unless ``url`` has a public host name."""
    # IP addresses are rejected in every notation, public or not: a name has an accountable owner.
    scheme, host = _split(url)
    if scheme not in schemes:
        raise InvalidLinkError(f"Expected a URL that begins with {schemes[0]}://.")
    if host is None:
        raise InvalidLinkError("The URL has no host, or a user name, or a port that is none.")
    name = _ascii_host(host)
    # Browsers parse a name that ends in a number as an IP address.
    is_address = ":" in name or _NUMBER.fullmatch(name.rpartition(".")[2]) is not None
    if is_address or is_private_name(name):
        raise InvalidLinkError("The URL's host must be a public name.")


def _split(url: str) -> tuple[str, str | None]:
    """Return the scheme and host in lower case. The host is None if it is missing or unsafe."""
    if has_control_characters(url) or any(c.isspace() or c == "\\" for c in url):
        raise InvalidLinkError("A URL has no blanks, control characters or backslashes.")
    try:
        parts = urlsplit(url)
        port_is_sane = parts.port is None or 0 < parts.port <= MAX_PORT
    except ValueError:
        raise InvalidLinkError("This is not a URL.") from None
    if not _SCHEME.fullmatch(parts.scheme):
        raise InvalidLinkError("Expected a URL such as https://example.com/page.")
    return parts.scheme, parts.hostname if port_is_sane and "@" not in parts.netloc else None


def _ascii_host(host: str) -> str:
    """Return a host as browsers read it, in ASCII and without the final dot."""
    # Full-width letters, other full stops, and zero-width characters map to plain ones.
    if "%" in host:
        raise InvalidLinkError("The URL's host must be a public name.")
    try:
        plain = unicodedata.normalize("NFKC", host).encode("idna").decode("ascii")
    except UnicodeError:
        raise InvalidLinkError("The URL's host is not a name.") from None
    return plain.lower().removesuffix(".")


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field of a request."""

    pointer: str  # JSON Pointer to the field: ``/recipient/email``
    code: str
    detail: str


class InvalidRequestError(Exception):
    """A request with invalid fields."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__(", ".join(f"{p.pointer}: {p.code}" for p in problems))
        self.problems = tuple(problems)


class ProblemCollector:
    """Collects problems, so that a client receives all of them at once."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Add a problem, up to MAX_PROBLEMS."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(FieldProblem(pointer, code, detail))

    def check_one_line(self, text: str | None, pointer: str) -> None:
        """Add a problem for a text with a line break or another control character."""
        if text is not None and has_control_characters(text):
            reason = "Must be one line without control characters."
            self.add(pointer, "control_characters", reason)

    def check_identifier(self, text: str | None, pointer: str) -> None:
        """Add a problem for a text that can't be an identifier, such as a user ID."""
        if text is not None and (fault := find_identifier_fault(text)) is not None:
            self.add(pointer, fault.code, fault.detail)

    def raise_if_any(self) -> None:
        """Raise InvalidRequestError if there are problems."""
        if self.problems:
            raise InvalidRequestError(self.problems)


def check_storable(value: Any, pointer: str, problems: ProblemCollector, *, in_data: bool) -> int:
    """Add a problem for each part of ``value`` that can't be stored. Return its property count."""
    if isinstance(value, str):
        _check_text(value, pointer, problems)
    elif isinstance(value, int) and not _MIN_INT <= value <= _MAX_INT:
        problems.add(pointer, "integer_too_large", "An integer has at most 64 bits.")
    elif isinstance(value, float) and not math.isfinite(value):
        problems.add(pointer, "no_number", "NaN and Infinity are not JSON.")
    elif isinstance(value, list):
        return sum(
            check_storable(item, f"{pointer}/{i}", problems, in_data=in_data)
            for i, item in enumerate(value)
        )
    elif isinstance(value, dict):
        count = len(value)
        for key, item in value.items():
            child_pointer = f"{pointer}/{pointer_token(key)}"
            _check_key(key, child_pointer, problems, in_data=in_data)
            count += check_storable(
                item, child_pointer, problems, in_data=in_data or key in FREE_FORM
            )
        return count
    return 0


def pointer_token(key: str) -> str:
    """Return a key as a token of a JSON Pointer, truncated if long."""
    escaped = key[:MAX_KEY_LENGTH].replace("~", "~0").replace("/", "~1")
    return escaped.encode(errors="replace").decode()


def pointer_name(token: str) -> str:
    """Return the name that a token of a JSON Pointer stands for."""
    return token.replace("~1", "/").replace("~0", "~")


def suggest(name: str, *names: str, inner: Iterable[str] = ()) -> str:
    """Return `` Did you mean `user_id`?`` with the name most like an unknown one, or an empty text.

    ``inner`` are dotted names, such as ``recipient.email``. Only their last part is compared, and
    it must be equal.
    """
    snake_case = _CAMEL_CASE_BOUNDARY.sub("_", name[:MAX_KEY_LENGTH]).lower().replace("-", "_")
    similar = [name for name in inner if name.rpartition(".")[2] == snake_case]
    similar = difflib.get_close_matches(snake_case, names, n=1, cutoff=0.8) or similar
    if not similar and len(snake_case) >= MIN_FUZZY:
        similar = difflib.get_close_matches(snake_case, names, n=1, cutoff=0.72)
    return f" Did you mean `{similar[0]}`?" if similar else ""


def _check_text(text: str, pointer: str, problems: ProblemCollector) -> None:
    if "\x00" in text:
        problems.add(pointer, "nul_character", "A text holds the character NUL.")
    if _SURROGATE.search(text):
        problems.add(pointer, "lone_surrogate", "A text holds half of a surrogate pair.")


def _check_key(key: str, pointer: str, problems: ProblemCollector, *, in_data: bool) -> None:
    _check_text(key, pointer, problems)
    if len(key) > MAX_KEY_LENGTH:
        problems.add(pointer, "key_too_long", f"A key has over {MAX_KEY_LENGTH} characters.")
    if in_data and (key.startswith("$") or "." in key or key == "__proto__" or not key):
        reason = "A key is empty, begins with $, holds a dot, or is __proto__."
        problems.add(pointer, "forbidden_key", reason)


def is_all(names: ChannelNames) -> bool:
    """Return whether these names are ``all``, alone or as the only element of a list."""
    return names in (ALL, [ALL])


def parse_channels(
    names: Sequence[str],
    *,
    problems: ProblemCollector,
    pointer: str = "/channels",
    takes_all: bool = False,
) -> list[Channel]:
    """Return the channels with these names. Add problems at ``pointer``.

    ``takes_all``: ``all`` alone would be possible, which the caller has ruled out.
    """
    channels: list[Channel] = []
    for index, name in enumerate(names):
        channel = parse_channel(name)
        if channel is None:
            alone = f", or {ALL} alone" if takes_all else ""
            expected = f"Expected one of {', '.join(Channel)}{alone}."
            problems.add(f"{pointer}/{index}", "unknown_channel", expected)
        elif channel in channels:
            problems.add(f"{pointer}/{index}", "duplicate_channel", "Duplicate channel.")
        else:
            channels.append(channel)
    if not names:
        problems.add(pointer, "no_channel", "Name at least one channel, or leave it out.")
    return channels


def parse_channel(name: str) -> Channel | None:
    """Return the channel with this name or alias, or None."""
    return ALIASES.get(name) or next((channel for channel in Channel if channel == name), None)
