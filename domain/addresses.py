"""Kinds of addresses: how each is checked, written, and compared. Pure."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import phonenumbers
from email_validator import EmailNotValidError, EmailSyntaxError, validate_email

_BRAZILIAN_MOBILE = re.compile(r"(\+55[1-9]\d)9([6-9]\d{7})", re.ASCII)
_OTHER_FORMS = (
    _BRAZILIAN_MOBILE,
    re.compile(r"(\+52)1(\d{10})", re.ASCII),
    re.compile(r"(\+54)9(\d{10})", re.ASCII),
    re.compile(r"(\+229)01(\d{8})", re.ASCII),
)
"""Brazil and Mexico: the older form, without the ninth digit, or with a 1 after the country code.
Argentina: the 9 of a mobile number is dialled from abroad only. Benin: numbers had eight digits
until November 2024, and keep them after 01."""
E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
"""A phone number as it is stored and sent, and as providers report it."""
_SIMPLE_EMAIL = re.compile(r"([a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*)@([A-Za-z0-9.-]+)", re.ASCII)
"""Address whose validity depends on its domain alone; domains are cached."""
_SIMPLE_LENGTH = 200
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_LOCAL_PART_LENGTH = 64
_ENDS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace()) + "".join(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF))
)
"""Blanks and invisible characters, such as the marks of direction that copying a number adds."""
_MAX_NAMED = 400


class InvalidAddressError(ValueError):
    """An invalid address. The message does not repeat the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressKind:
    """A kind of address. Channels of one kind send to the same field of a recipient."""

    field: str
    """The field of a recipient, in requests, documents, and the registry."""
    name: str
    placeholder: str
    """What a form shows in an empty input."""
    input_type: str
    """The type of an HTML input."""
    normalize: Callable[[str], str]
    """Returns an address as it is stored. Raises InvalidAddressError."""
    fold: Callable[[str], str]
    """Returns an address as it is compared. Takes what a provider reports, valid or not."""

    @property
    def title(self) -> str:
        """The name as a label."""
        return self.name.capitalize()


def trim(text: str) -> str:
    """Return a text without blanks and invisible characters at its ends."""
    return text.strip(_ENDS)


def normalize_email(text: str) -> str:
    """Return the normalized email address. Raises InvalidAddressError."""
    # Invalid are: a display name, a list, a domain without a dot, an IP address as the domain, and
    # a local part of over 64 characters.
    try:
        return _normal_email(text)
    except EmailNotValidError:
        expected = "Expected one address such as ada@example.com"
        raise InvalidAddressError(f"{expected}{_email_fault(trim(text))}.") from None


def normalize_phone(text: str) -> str:
    """Return the number in E.164. Raises InvalidAddressError if it is malformed or can't exist."""
    number = trim(text)
    if E164.fullmatch(number) and not _is_possible(number):
        # As WhatsApp reports it: a Mexican number with a 1 is dialled without.
        number = fold_phone(number)
    if not E164.fullmatch(number) or not _is_possible(number):
        expected = "Expected a number in E.164 form such as +351912345678"
        raise InvalidAddressError(f"{expected}{_invisible_fault(number)}.")
    return number


def with_country_code(text: str, *, country: str) -> str:
    """Return a phone number with the code of its country, if it has none; another text as it is."""
    number = trim(text)
    if number.startswith("+"):
        return text
    try:
        parsed = phonenumbers.parse(number, country)
    except phonenumbers.NumberParseException:
        return text
    return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)


def normalize_room(text: str) -> str:
    """Return the ID of a room. Raises InvalidAddressError if no room can have it."""
    slug = trim(text)
    if not _SLUG.fullmatch(slug):
        raise InvalidAddressError("Expected the ID of a room such as ops.")
    return slug


def fold_phone(phone: str) -> str:
    """Return a phone number in the form that is stored and compared."""
    # WhatsApp reports mobile numbers of some countries in another form than the dialled one.
    # recipients/whatsapp_identities.py learns the forms of others.
    for form in _OTHER_FORMS:
        if found := form.fullmatch(phone):
            return found[1] + found[2]
    return phone


def fold_email(address: str) -> str:
    """Return an email address in lower case, with its domain in Unicode or ASCII made equal."""
    # Providers report ``bücher.example`` as ``xn--bcher-kva.example``.
    plain = address.lower()
    if plain.isascii():
        return plain
    try:
        parsed = validate_email(
            plain, check_deliverability=False, allow_smtputf8=False, test_environment=True
        )
    except EmailNotValidError:
        return plain
    return (parsed.ascii_email or plain).lower()


def _email_fault(text: str) -> str:
    """Return what is wrong with an address, if it's a common mistake. Repeats nothing of it."""
    local_part, _, domain = text.rpartition("@")
    is_dotted = ".." in text or local_part.startswith(".") or local_part.endswith(".")
    faults = (
        ("<" in text or ">" in text, ", without `<`, `>`, and a name"),
        (text.count("@") > 1 and re.search("[,;]", text) is not None, ", not several"),
        ('"' in local_part, "; a quoted part before the @ isn't supported"),
        (is_dotted, "; a dot stands between two other characters"),
        (not local_part.isascii(), "; the part before the @ isn't ASCII"),
        ("@" in text and "." not in domain, "; the domain has no dot"),
    )
    return _invisible_fault(text) or next((text for is_found, text in faults if is_found), "")


def _invisible_fault(text: str) -> str:
    """Return the name and the place of the first character that nobody sees, or nothing."""
    for index, character in enumerate(text[:_MAX_NAMED]):
        if unicodedata.category(character) in ("Cf", "Cc", "Zs", "Zl", "Zp"):
            name = unicodedata.name(character, "control character").lower()
            return f"; character {index + 1} is U+{ord(character):04X} ({name})"
    return ""


@lru_cache(maxsize=4096)
def _normal_email(text: str) -> str:
    # Called twice per request: for its suppressions, and for the recipient. Blanks at the ends come
    # with a copied address.
    text = trim(text)
    # Mail clients decode an encoded word, and would show another address.
    if "=?" in text and "?=" in text:
        raise EmailSyntaxError("an encoded word")
    simple = _SIMPLE_EMAIL.fullmatch(text) if len(text) <= _SIMPLE_LENGTH else None
    if simple is None or len(simple[1]) > _LOCAL_PART_LENGTH:
        return _validated(text)
    return f"{simple[1]}@{_normal_domain(simple[2])}"


@lru_cache(maxsize=4096)
def _normal_domain(domain: str) -> str:
    return _validated(f"a@{domain}").rpartition("@")[2]


def _validated(text: str) -> str:
    return validate_email(
        text, check_deliverability=False, strict=True, allow_smtputf8=False, test_environment=True
    ).normalized


@lru_cache(maxsize=4096)
def _is_possible(number: str) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number, None))
    except phonenumbers.NumberParseException:
        return False


EMAIL_ADDRESS = AddressKind(
    field="email",
    name="email address",
    placeholder="name@example.com",
    input_type="email",
    normalize=normalize_email,
    fold=fold_email,
)
PHONE_NUMBER = AddressKind(
    field="phone",
    name="phone number",
    placeholder="+351…",
    input_type="tel",
    normalize=normalize_phone,
    fold=fold_phone,
)
ROOM = AddressKind(
    field="room",
    name="room",
    placeholder="ops",
    input_type="text",
    normalize=normalize_room,
    fold=trim,
)
"""A place of a team, by its ID. No person has it."""
ADDRESS_KINDS: Mapping[str, AddressKind] = {
    kind.field: kind for kind in (EMAIL_ADDRESS, PHONE_NUMBER)
}
"""The kinds of addresses that a person has, by their fields."""
