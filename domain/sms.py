"""Text messages: their encoding, and the parts that are paid for. Pure.

A part has 140 bytes. If each character is one of GSM-7 (3GPP TS 23.038), it holds 160 of them;
otherwise the text is UTF-16, which the standard calls UCS-2, and a part holds 70 code units. The
parts of a longer text lose 6 bytes each to the header that joins them.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

_BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENSION = frozenset("\f^{}\\[~]|€")
"""Characters that follow an escape. Both septets are in the same part."""
_GSM_7 = _BASIC | _EXTENSION


def _characters(*codes: int | range) -> Iterable[int]:
    for code in codes:
        yield from (code,) if isinstance(code, int) else code


_PLAIN: Mapping[int, str] = {
    **dict.fromkeys(_characters(range(0x2018, 0x201C), 0x2039, 0x203A), "'"),
    **dict.fromkeys(_characters(range(0x201C, 0x2020), 0xAB, 0xBB), '"'),
    **dict.fromkeys(_characters(range(0x2010, 0x2016), 0x2212), "-"),
    0x2026: "...",
    # The format of times and amounts has U+202F in many languages since CLDR 42.
    **dict.fromkeys(_characters(0x09, 0xA0, range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    # Nobody sees these: the soft hyphen, joiners, marks of direction, and the byte order mark.
    **dict.fromkeys(
        _characters(
            0xAD,
            range(0x200B, 0x2010),
            range(0x202A, 0x202F),
            range(0x2060, 0x2070),
            0xFEFF,
        ),
        "",
    ),
}
"""What typographic characters are in GSM-7. Word processors, phones, and copying add them."""


class Encoding(StrEnum):
    """How a text is encoded."""

    GSM_7 = "gsm_7"
    UCS_2 = "ucs_2"

    @property
    def label(self) -> str:
        """Its name for people."""
        return "GSM-7" if self is Encoding.GSM_7 else "Unicode"

    @property
    def single(self) -> int:
        """How much one part alone holds."""
        return 160 if self is Encoding.GSM_7 else 70

    @property
    def joined(self) -> int:
        """How much one of several parts holds."""
        return 153 if self is Encoding.GSM_7 else 67

    def size(self, text: str) -> int:
        """Return how much of a part a text takes."""
        if self is Encoding.GSM_7:
            return len(text) + sum(map(text.count, _EXTENSION))
        return len(text.encode("utf-16-be", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedText:
    """A text as it is sent."""

    text: str
    encoding: Encoding
    parts: tuple[str, ...]
    """The text, divided as it is sent. No character is divided."""
    forcing: tuple[str, ...] = ()
    """The characters that GSM-7 lacks, each once."""

    @property
    def units(self) -> int:
        """How many parts are paid for."""
        return len(self.parts)


MAX_UNITS = 10
"""Parts of a text that providers take at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRules:
    """What a text of a type may cost."""

    max_units: int = 3
    allow_unicode: bool = True

    def problem(self, encoded: EncodedText) -> str | None:
        """Return why a text isn't sent, as a sentence, or None. It repeats nothing of the text."""
        if encoded.encoding is Encoding.UCS_2 and not self.allow_unicode:
            return "Some characters aren't in GSM-7, and the type forbids Unicode."
        if encoded.units > self.max_units:
            most = "one part" if self.max_units == 1 else f"{self.max_units} parts"
            return f"{encoded.units} parts as {encoded.encoding.label}; at most {most}."
        return None


def encode(text: str, *, smart: bool = True) -> EncodedText:
    """Return a text as it is sent.

    With ``smart``, typographic characters become plain ones if the whole text is GSM-7 then.
    A text that is Unicode anyway keeps them, because they cost it nothing.
    """
    typed = _encode(text.replace("\r\n", "\n"))
    if not smart or typed.encoding is Encoding.GSM_7:
        return typed
    plain = _encode(unicodedata.normalize("NFC", typed.text).translate(_PLAIN))
    # An ellipsis is one character and becomes three.
    if plain.encoding is Encoding.GSM_7 and plain.units <= typed.units:
        return plain
    return replace(typed, forcing=plain.forcing or typed.forcing)


def _encode(text: str) -> EncodedText:
    is_plain = _GSM_7.issuperset(text)
    forcing = () if is_plain else tuple(each for each in dict.fromkeys(text) if each not in _GSM_7)
    encoding = Encoding.GSM_7 if is_plain else Encoding.UCS_2
    parts = _divide(text, encoding)
    return EncodedText(text=text, encoding=encoding, parts=parts, forcing=forcing)


def _divide(text: str, encoding: Encoding) -> tuple[str, ...]:
    if encoding.size(text) <= encoding.single:
        return (text,)
    starts, room = [0], encoding.joined
    for index, size in enumerate(map(encoding.size, text)):
        if size > room:
            starts.append(index)
            room = encoding.joined
        room -= size
    ends = (*starts[1:], len(text))
    return tuple(text[start:end] for start, end in zip(starts, ends, strict=True))
