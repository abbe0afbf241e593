"""Text messages: encoding, parts, and what makes one Unicode."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from domain.sms import EncodedText, Encoding, encode
from tests.support.tables import each_case

GSM, UCS = Encoding.GSM_7, Encoding.UCS_2
EXTENSION = "^{}\\[]~|€\f"
WHALE = "\U0001f433"
texts = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(f"aé{EXTENSION}{WHALE}\u2019\u2026\u00a0\u00ad\u0301\r\n\t"),
    ),
    max_size=400,
)


def size(part: str, encoding: Encoding) -> int:
    """Return what a part takes, counted in another way than the code's."""
    if encoding is UCS:
        return sum(1 if character <= "\uffff" else 2 for character in part)
    return sum(2 if character in EXTENSION else 1 for character in part)


@each_case(
    "text, encoding, units",
    [
        ("", GSM, 1),
        ("a" * 160, GSM, 1),
        ("a" * 161, GSM, 2),
        ("a" * 306, GSM, 2),
        ("a" * 307, GSM, 3),
        ("a" * 1530, GSM, 10),
        ("\u4e2d" * 70, UCS, 1),
        ("\u4e2d" * 71, UCS, 2),
        ("\u4e2d" * 134, UCS, 2),
        ("\u4e2d" * 135, UCS, 3),
        # Each takes two septets, and 153 is odd: a part holds 76 of them.
        ("]" * 80, GSM, 1),
        ("]" * 81, GSM, 2),
        ("]" * 152, GSM, 2),
        ("]" * 153, GSM, 3),
        # In Unicode they take one.
        ("this is a " + "]" * 73 + "\U0001f618", UCS, 2),
        ("|" * 24 + "{" + "|" * 28 + "\u221e" + "|" * 10 + "^" + "|" * 5, UCS, 1),
        # A character outside the basic plane takes two, and 67 is odd.
        (WHALE * 35, UCS, 1),
        (WHALE * 36, UCS, 2),
        (WHALE * 66, UCS, 2),
        (WHALE * 67, UCS, 3),
        # A browser ends lines with two characters, of which a phone shows one.
        ("a" * 80 + "\r\n" + "a" * 79, GSM, 1),
        ("Su receta est\u00e1 lista. \u00a1Gracias!", UCS, 1),
        ("\u00a1Gracias! \u00bfD\u00f3nde?".replace("\u00f3", "o"), GSM, 1),
        ("Fran\u00e7ais", UCS, 1),
        ("FRAN\u00c7AIS", GSM, 1),
        ("1 \u20ac", GSM, 1),
        ("Gr\u00fc\u00dfe", GSM, 1),
    ],
)
def test_a_text_has_an_encoding_and_units(text: str, encoding: Encoding, units: int) -> None:
    encoded = encode(text)
    assert (encoded.encoding, encoded.units) == (encoding, units)


@each_case(
    "text, plain",
    [
        ("\u201cIt\u2019s ready\u201d", '"It\'s ready"'),
        ("\u201eGut\u201c", '"Gut"'),
        ("\u00abOui\u00bb \u2039non\u203a", "\"Oui\" 'non'"),
        ("9\u201317 \u2014 open", "9-17 - open"),
        ("\u22125 \u00a4".replace("\u00a4", "C"), "-5 C"),
        ("Wait\u2026", "Wait..."),
        # Dates and amounts in the formats of CLDR.
        ("5:00\u202fPM", "5:00 PM"),
        ("1\u00a0234,50\u00a0\u20ac", "1 234,50 \u20ac"),
        ("a\tb", "a b"),
        ("a\u2028b", "a\nb"),
        # Nobody sees these, and a copied text has them.
        ("Mit besten Gr\u00fc\u00dfen\u200c", "Mit besten Gr\u00fc\u00dfen"),
        ("\ufeffYour code\u200b is 12\u00ad34\u202c", "Your code is 1234"),
        # macOS writes a letter and its accent apart.
        ("Cafe\u0301 A\u030angstrom \u212b \u2126", "Caf\u00e9 \u00c5ngstrom \u00c5 \u03a9"),
    ],
)
def test_typographic_characters_become_plain(text: str, plain: str) -> None:
    encoded = encode(text)
    assert (encoded.text, encoded.encoding, encoded.forcing) == (plain, GSM, ())
    typed = encode(text, smart=False)
    assert (typed.text, typed.encoding) == (text, UCS)


@each_case(
    "text, forcing",
    [
        ("\u201cHi\u201d \U0001f44d\u2026 \U0001f44d", ("\U0001f44d",)),
        ("\u201c\u0627\u0644\u0633\u201d", ("\u0627", "\u0644", "\u0633")),
        ("`ls` \u00e7", ("`", "\u00e7")),
        ("I\u0333F\u0333", ("\u0333",)),
        ("\u00b4", ("\u00b4",)),
        # One part. As 210 dots it would be two.
        ("\u2026" * 70, ("\u2026",)),
    ],
)
def test_a_unicode_text_stays_as_it_is(text: str, forcing: tuple[str, ...]) -> None:
    """Its typographic characters cost nothing, and its joiners may have a meaning."""
    encoded = encode(text)
    assert (encoded.text, encoded.encoding, encoded.forcing) == (text, UCS, forcing)


def test_without_smart_encoding_each_character_counts() -> None:
    assert encode("\u201cHi\u201d\u2026", smart=False).forcing == ("\u201c", "\u201d", "\u2026")


@given(texts, st.booleans())
def test_parts_are_the_text_and_fit(text: str, smart: bool) -> None:
    encoded = encode(text, smart=smart)
    assert "".join(encoded.parts) == encoded.text
    assert all(fits(part, encoded) for part in encoded.parts)
    # No part could take the first character of the next one.
    for part, following in zip(encoded.parts, encoded.parts[1:], strict=False):
        assert size(part + following[0], encoded.encoding) > encoded.encoding.joined


def fits(part: str, encoded: EncodedText) -> bool:
    encoding = encoded.encoding
    return size(part, encoding) <= (encoding.single if encoded.units == 1 else encoding.joined)


@given(texts)
def test_smart_encoding_never_costs_more(text: str) -> None:
    smart, typed = encode(text), encode(text, smart=False)
    assert smart.units <= typed.units
    assert encode(smart.text) == smart


@given(st.text(st.sampled_from("aà1 \n@]€"), max_size=400))
def test_a_text_of_gsm_7_is_sent_as_it_is(text: str) -> None:
    assert encode(text).text == unicodedata.normalize("NFC", text)
    assert encode(text) == encode(text, smart=False)
