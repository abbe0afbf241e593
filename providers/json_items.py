"""Splits a JSON list into its items, so that one that can't be read costs no other its effect."""

import re
from collections.abc import Iterator

import msgspec

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},"]', re.DOTALL)
"""A text, a character of the structure, or the beginning of a text without an end."""


def split_array(raw: bytes) -> list[bytes]:
    """Return the items of a JSON list, undecoded. Raises ValueError if ``raw`` is no list.

    Items may be invalid JSON by themselves, such as NaN, or nested too deeply to be decoded.
    """
    try:
        return [bytes(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except (ValueError, RecursionError):
        return list(_scan(raw.strip()))


def _scan(raw: bytes) -> Iterator[bytes]:
    if not (raw.startswith(b"[") and raw.endswith(b"]")):
        raise ValueError("expected a JSON list")
    depth, start = 0, 1
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
            case b'"':
                raise ValueError("the JSON list has a text without an end")
            case b"," if depth == 1:
                yield raw[start : token.start()]
                start = token.end()
            case _:
                continue
        if depth == 0:
            if token.end() != len(raw):
                raise ValueError("expected one JSON list")
            if last := raw[start : token.start()].strip():
                yield last
            return
    raise ValueError("the JSON list has no end")
