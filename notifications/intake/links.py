"""Which links a message may carry. Pure: no name is resolved."""

import re
import unicodedata
from urllib.parse import urlsplit

from .addresses import has_control_characters

FORBIDDEN_SCHEMES = frozenset({"javascript", "data", "vbscript", "file", "ftp", "about", "blob"})
"""Schemes that run something, or reach into a device."""
PRIVATE_SUFFIXES = (".internal", ".local", ".localhost", ".lan", ".home.arpa")
MAX_PORT = 65_535
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}", re.ASCII)
_NUMBER = re.compile(r"0x[0-9a-f]*|\d+", re.ASCII)


class LinkProblem(ValueError):
    """A link that a message may not carry."""


def check_image_url(url: str) -> str:
    """Return an https URL on a public host; raises LinkProblem."""
    check_public_url(url, schemes=("https",))
    return url


def check_deep_link(link: str) -> str:
    """Return a link into an app or to a public https page; raises LinkProblem."""
    scheme = _split(link)[0]
    if scheme in ("http", "https"):
        check_public_url(link, schemes=("https", "http"))
    elif scheme in FORBIDDEN_SCHEMES:
        raise LinkProblem("Links of this scheme are not allowed.")
    return link


def check_public_url(url: str, *, schemes: tuple[str, ...]) -> None:
    """Raise LinkProblem unless ``url`` names a public host by its name.

    An address in figures is refused in every notation, public or not: names can be answered for.
    """
    scheme, host = _split(url)
    if scheme not in schemes:
        raise LinkProblem(f"Expected a URL that begins with {schemes[0]}://.")
    if host is None:
        raise LinkProblem("The URL has no host, or a user name, or a port that is none.")
    name = _plain(host)
    if _is_address(name) or name.endswith(PRIVATE_SUFFIXES) or "." not in name:
        raise LinkProblem("The URL's host must be a public name.")


def _split(url: str) -> tuple[str, str | None]:
    """Return scheme and host in lower case; the host is None if there is none to speak of."""
    if has_control_characters(url) or any(c.isspace() or c == "\\" for c in url):
        raise LinkProblem("A URL has no blanks, control characters or backslashes.")
    try:
        parts = urlsplit(url)
        port_is_sane = parts.port is None or 0 < parts.port <= MAX_PORT
    except ValueError:
        raise LinkProblem("This is not a URL.") from None
    if not _SCHEME.fullmatch(parts.scheme):
        raise LinkProblem("Expected a URL such as https://example.com/page.")
    has_user = "@" in parts.netloc
    host = parts.hostname if port_is_sane and not has_user else None
    return parts.scheme, host


def _plain(host: str) -> str:
    """Return a host as a browser reads it: without the final dot, in plain ASCII.

    Full-width letters, other full stops and characters without a width stand for plain ones.
    """
    if "%" in host:
        raise LinkProblem("The URL's host must be a public name.")
    try:
        plain = unicodedata.normalize("NFKC", host).encode("idna").decode("ascii")
    except UnicodeError:
        raise LinkProblem("The URL's host is not a name.") from None
    return plain.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    """Return whether this is an IP address; browsers take a name that ends in a number for one."""
    return ":" in name or _NUMBER.fullmatch(name.rpartition(".")[2]) is not None
