"""Whether an address can be one."""

import pytest
from email_validator import EmailNotValidError
from hypothesis import example, given
from hypothesis import strategies as st

from notifications import validation
from notifications.validation import (
    InvalidAddressError,
    has_control_characters,
    normalize_email,
    normalize_phone,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ada@example.com", "ada@example.com"),
        ("Ada.Lovelace+tag@Example.COM", "Ada.Lovelace+tag@example.com"),
        ("a@b.co", "a@b.co"),
        ("o'brien@example.ie", "o'brien@example.ie"),
        ("x_y-z=w@sub.sub.example.org", "x_y-z=w@sub.sub.example.org"),
        ("a" * 64 + "@example.com", "a" * 64 + "@example.com"),
        ("ada@example.test", "ada@example.test"),
        ("ada@b\u00fccher.example.com", "ada@b\u00fccher.example.com"),
    ],
)
def test_an_address_is_taken_in_its_normal_form(text: str, normal: str) -> None:
    assert normalize_email(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "ada", "@example.com", "ada@", "ada@@example.com", "ada@example", "ada@.com"),
        *("ada@example..com", ".ada@example.com", "ada.@example.com", "a..da@example.com"),
        *("a@b.c\r\nBcc: eve@example.com", "ada@example.com\n", "ada@exam\nple.com"),
        *("ada@example.com\x00", "ada\x00@example.com", "ada\t@example.com"),
        *("ada@example.com, eve@example.com", "ada@example.com;eve@example.com"),
        *("Ada <ada@example.com>", "<ada@example.com>", '"Ada" <ada@example.com>'),
        *("ada@localhost", "ada@host.local", "ada@[127.0.0.1]", "ada@127.0.0.1"),
        *("ada@[IPv6:::1]", "a" * 65 + "@example.com", "ada@" + "a" * 64 + ".com"),
        *("ada@" + "a." * 130 + "com", "ada lovelace@example.com", "ada @example.com"),
        *(" ada@example.com", "ada@example.com ", "ada@exa mple.com", "mailto:ada@example.com"),
        *('"ada lovelace"@example.com', "ada(comment)@example.com", "ada@example.com."),
        *("\u00e4da@example.com", "ada@exam_ple.com", "ada@-example.com", "ada@example-.com"),
        *("ada@example.com\u200b", "\u202eada@example.com", "ada@example\uff0ecom@x"),
        *("$ne", '{"$gt": ""}', "null", "a" * 100_000),
    ],
)
def test_what_is_no_single_address_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(
        InvalidAddressError, match=r"^Expected one address such as ada@example\.com\.$"
    ):
        normalize_email(text)


@given(st.text(max_size=80) | st.emails())
def test_any_text_is_an_address_or_a_problem(text: str) -> None:
    try:
        address = normalize_email(text)
    except InvalidAddressError:
        return
    assert address.count("@") == 1
    assert not has_control_characters(address)
    assert normalize_email(address) == address


LOCAL_PARTS = st.text("ab1._+-A", max_size=6) | st.sampled_from(["a" * 64, "a" * 65, "www", "Info"])
DOMAINS = st.lists(st.text("abX1-", max_size=4), min_size=1, max_size=4).map(".".join)
KNOWN_DOMAINS = st.sampled_from(
    [
        *("example.com", "EXAMPLE.Com", "xn--bcher-kva.example", "localhost", "host.local"),
        *("1.2.3.4", "example.c", "ab--cd.com", "a" * 63 + ".com", "a" * 64 + ".com"),
        *("a." * 90 + "com", "a." * 125 + "com", "b\u00fccher.example", "example.test", "x.onion"),
    ]
)


@given(LOCAL_PARTS, DOMAINS | KNOWN_DOMAINS)
@example("a" * 64, "a." * 95 + "com")
def test_what_is_told_by_the_domain_alone_is_what_the_whole_address_tells(
    local_part: str, domain: str
) -> None:
    text = f"{local_part}@{domain}"
    try:
        expected = validation._validated(text)
    except EmailNotValidError:
        with pytest.raises(InvalidAddressError):
            normalize_email(text)
    else:
        assert normalize_email(text) == expected


@pytest.mark.parametrize(
    "number",
    [
        "+351912345678",
        "+14155552671",
        "+442071838750",
        "+4930901820",
        "+819012345678",
        "+6421123456",
    ],
)
def test_a_number_in_e164_form_is_taken_as_it_is(number: str) -> None:
    assert normalize_phone(number) == number


@pytest.mark.parametrize(
    "number",
    [
        *("", "+", "351912345678", "00351912345678", "+0351912345678", "+351 912 345 678"),
        *("+351-912-345-678", "+351(912)345678", "912345678", "+35191234567a", "+351912345678\n"),
        *(" +351912345678", "+351912345678 ", "tel:+351912345678", "+1", "+12", "+123456"),
        *("+1234567890123456", "+99999999999999", "+35191", "+1415", "+" + "\u0661" * 11),
        *("\uff0b351912345678", "++351912345678", "+351912345678;ext=1", "$ne", "a" * 10_000),
        "+" + "9" * 10_000,
    ],
)
def test_another_form_or_an_impossible_number_is_refused(number: str) -> None:
    expected = r"^Expected a number in E\.164 form such as \+351912345678\.$"
    with pytest.raises(InvalidAddressError, match=expected):
        normalize_phone(number)


@given(st.text(max_size=30) | st.from_regex(r"\A\+[0-9]{1,17}\Z"))
def test_any_text_is_a_number_or_a_problem(text: str) -> None:
    try:
        number = normalize_phone(text)
    except InvalidAddressError:
        return
    assert number == text
    assert number[0] == "+"
    assert number[1:].isascii()
    assert number[1:].isdigit()


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\rb", "a\tb", "a\x00b", "a\x1bb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b"],
)
def test_a_line_break_is_a_control_character(text: str) -> None:
    assert has_control_characters(text)


@pytest.mark.parametrize(
    "text",
    ["", "Ada Lovelace", "caf\u00e9", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "$x", "\u202e"],
)
def test_letters_and_emoji_are_not(text: str) -> None:
    assert not has_control_characters(text)
