"""The rule for identifiers that clients choose, such as user IDs. Pure.

An identifier stands in URLs: of this API, of the console, and of apps that use it. Proxies and
HTTP clients decode ``%2F`` and resolve ``..``, escaped or not. A slash or a dot segment in an
identifier would therefore name something else: ``DELETE /recipients/victim%2F`` could reach the
recipient ``victim``. Both are refused where an identifier is accepted. Every other character can be
escaped, and means itself.
"""

import re
from dataclasses import dataclass

_FAULTY = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
DOT_SEGMENTS = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class IdentifierFault:
    """Why a text is no identifier."""

    code: str
    detail: str


_BLANK = IdentifierFault("blank", "Must not be blank.")
_SLASH = IdentifierFault("slash", "An identifier contains no slash, escaped or not.")
_DOTS = IdentifierFault("dot_segment", "An identifier is neither `.` nor `..`.")
_NUL = IdentifierFault("nul_character", "An identifier contains no NUL character.")
_HALF = IdentifierFault("lone_surrogate", "An identifier contains no half of a surrogate pair.")
_CONTROL = IdentifierFault("control_characters", "Must be one line without control characters.")


def find_identifier_fault(text: str) -> IdentifierFault | None:
    """Return why a text can't be an identifier, or None if it can. Lengths are not checked."""
    if text in DOT_SEGMENTS:
        return _DOTS
    faulty = _FAULTY.search(text)
    if faulty is None:
        return None if text.strip() else _BLANK
    if "\x00" in text:
        return _NUL
    if _SURROGATE.search(text):
        return _HALF
    return _SLASH if faulty[0] == "/" else _CONTROL


def has_ambiguous_segment(path: str) -> bool:
    """Return whether a part of ``path`` between slashes is empty, ``.``, or ``..``.

    Some proxies and HTTP clients change such a path into another one.
    """
    return any(not segment or segment in DOT_SEGMENTS for segment in path.split("/"))
