"""How many messages a text makes on the air, by the tables of GSM 03.38."""

from collections.abc import Iterator

BASIC = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
ESCAPED = "\f^{}\\[~]|€"
BITS = 1120
HEADER_BITS = 48
"""Of each part of a message in several parts."""
SEPTET, UNIT = 7, 16


def encoding(text: str) -> str:
    """Return the name of the encoding in which a text is sent."""
    return "GSM-7" if all(letter in BASIC or letter in ESCAPED for letter in text) else "UCS-2"


def count(text: str) -> int:
    """Return the number of parts. No letter is divided between two of them."""
    sizes = list(_sizes(text))
    if sum(sizes) <= BITS:
        return 1
    parts, room = 1, BITS - HEADER_BITS
    for size in sizes:
        if size > room:
            parts, room = parts + 1, BITS - HEADER_BITS
        room -= size
    return parts


def _sizes(text: str) -> Iterator[int]:
    is_gsm = encoding(text) == "GSM-7"
    for letter in text:
        if is_gsm:
            yield SEPTET * (2 if letter in ESCAPED else 1)
        else:
            yield UNIT * (len(letter.encode("utf-16-le", "surrogatepass")) // 2)
