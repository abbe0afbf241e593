"""Validation of addresses and links."""

import contextlib
from collections.abc import Callable

import pytest
from email_validator import EmailNotValidError
from hypothesis import example, given
from hypothesis import strategies as st

from domain import addresses
from domain.addresses import InvalidAddressError, normalize_email, normalize_phone
from notifications.validation import (
    InvalidLinkError,
    check_deep_link,
    check_image_url,
    check_public_url,
    has_control_characters,
)
from tests.support.tables import each_case


@each_case(
    "text, normal",
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
def test_email_is_normalized(text: str, normal: str) -> None:
    assert normalize_email(text) == normal


@each_case(
    "text",
    [
        "",
        " ",
        "ada",
        "@example.com",
        "ada@",
        "ada@@example.com",
        "ada@example",
        "ada@.com",
        "ada@example..com",
        ".ada@example.com",
        "ada.@example.com",
        "a..da@example.com",
        "a@b.c\r\nBcc: eve@example.com",
        "ada@exam\nple.com",
        "=?utf-8?q?a?=@b.co",
        "ada@example.com\x00",
        "ada\x00@example.com",
        "ada\t@example.com",
        "ada@example.com, eve@example.com",
        "ada@example.com;eve@example.com",
        "Ada <ada@example.com>",
        "<ada@example.com>",
        '"Ada" <ada@example.com>',
        "ada@localhost",
        "ada@host.local",
        "ada@[127.0.0.1]",
        "ada@127.0.0.1",
        "ada@[IPv6:::1]",
        "a" * 65 + "@example.com",
        "ada@" + "a" * 64 + ".com",
        "ada@" + "a." * 130 + "com",
        "ada lovelace@example.com",
        "ada @example.com",
        "ada@exa mple.com",
        "mailto:ada@example.com",
        '"ada lovelace"@example.com',
        "ada(comment)@example.com",
        "ada@example.com.",
        "\u00e4da@example.com",
        "ada@exam_ple.com",
        "ada@-example.com",
        "ada@example-.com",
        "ada\u200b@example.com",
        "ada\u202e@example.com",
        "ada@example\uff0ecom@x",
        "$ne",
        '{"$gt": ""}',
        "null",
        "a" * 100_000,
    ],
)
def test_invalid_email_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(
        InvalidAddressError, match=r"^Expected one address such as ada@example\.com.*\.$"
    ):
        normalize_email(text)


@given(st.text(max_size=80) | st.emails())
def test_any_text_is_an_email_or_refused(text: str) -> None:
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
        "example.com",
        "EXAMPLE.Com",
        "xn--bcher-kva.example",
        "localhost",
        "host.local",
        "1.2.3.4",
        "example.c",
        "ab--cd.com",
        "a" * 63 + ".com",
        "a" * 64 + ".com",
        "a." * 90 + "com",
        "a." * 125 + "com",
        "b\u00fccher.example",
        "example.test",
        "x.onion",
    ]
)


@given(LOCAL_PARTS, DOMAINS | KNOWN_DOMAINS)
@example("a" * 64, "a." * 95 + "com")
def test_domain_check_equals_the_full_check(local_part: str, domain: str) -> None:
    text = f"{local_part}@{domain}"
    try:
        expected = addresses._validated(text)
    except EmailNotValidError:
        with pytest.raises(InvalidAddressError):
            normalize_email(text)
    else:
        assert normalize_email(text) == expected


@each_case(
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
def test_e164_number_is_accepted_unchanged(number: str) -> None:
    assert normalize_phone(number) == number


@each_case(
    "number",
    [
        "",
        "+",
        "351912345678",
        "00351912345678",
        "+0351912345678",
        "+351 912 345 678",
        "+351-912-345-678",
        "+351(912)345678",
        "912345678",
        "+35191234567a",
        "+351912\u200b345678",
        "tel:+351912345678",
        "+1",
        "+12",
        "+123456",
        "+1234567890123456",
        "+99999999999999",
        "+35191",
        "+1415",
        "+" + "\u0661" * 11,
        "\uff0b351912345678",
        "++351912345678",
        "+351912345678;ext=1",
        "$ne",
        "a" * 10_000,
        "+" + "9" * 10_000,
    ],
)
def test_other_number_is_refused(number: str) -> None:
    expected = r"^Expected a number in E\.164 form such as \+351912345678.*\.$"
    with pytest.raises(InvalidAddressError, match=expected):
        normalize_phone(number)


@given(st.text(max_size=30) | st.from_regex(r"\A\+[0-9]{1,17}\Z"))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        number = normalize_phone(text)
    except InvalidAddressError:
        return
    assert number == text
    assert number[0] == "+"
    assert number[1:].isascii()
    assert number[1:].isdigit()


@each_case(
    "text",
    [
        " ada@example.com",
        "ada@example.com\n",
        "\u00a0ada@example.com\t",
        "\ufeffada@example.com",
        "ada@example.com\u200b",
        "\u202aada@example.com\u202c",
        "\u3000ada@example.com",
    ],
)
def test_blanks_and_invisible_characters_at_the_ends_of_an_address_are_cut(text: str) -> None:
    """https://github.com/alphagov/notifications-utils/pull/471"""
    assert normalize_email(text) == "ada@example.com"
    number = text.replace("ada@example.com", "+351912345678")
    assert normalize_phone(number) == "+351912345678"


@each_case(
    "number, stored",
    [
        # https://github.com/chatwoot/chatwoot/issues/11053: as WhatsApp reports them.
        ("+5215512345678", "+525512345678"),
        ("+525512345678", "+525512345678"),
        ("+5491123456789", "+5491123456789"),
        ("+541123456789", "+541123456789"),
        ("+553187654321", "+553187654321"),
    ],
)
def test_number_that_whatsapp_reports_is_taken(number: str, stored: str) -> None:
    assert normalize_phone(number) == stored


@each_case(
    "text, detail",
    [
        ("ada\u200b@example.com", "; character 4 is U+200B (zero width space)."),
        ("ada@exa\u200dmple.com", "; character 8 is U+200D (zero width joiner)."),
        ("ada @example.com", "; character 4 is U+0020 (space)."),
        ("ada@exam\tple.com", "; character 9 is U+0009 (control character)."),
        ("ada\u00ad@example.com", "; character 4 is U+00AD (soft hyphen)."),
        ("<ada@example.com>", ", without `<`, `>`, and a name."),
        ("Ada<ada@example.com>", ", without `<`, `>`, and a name."),
        ("a@example.com,b@example.com", ", not several."),
        ("a..b@docomo.example", "; a dot stands between two other characters."),
        ("ab.@docomo.example", "; a dot stands between two other characters."),
        ('"a..b"@docomo.example', "; a quoted part before the @ isn't supported."),
        ("ada@localhost", "; the domain has no dot."),
        ("=?utf-8?q?a?=@b.co", "."),
        ("=?UTF-8?B?YQ==?=@b.co", "."),
        ("x=?utf-8?q?a?=y@b.co", "."),
    ],
)
def test_refusal_of_an_email_names_the_mistake(text: str, detail: str) -> None:
    """https://github.com/validatorjs/validator.js/issues/940, https://github.com/mikel/mail/issues/1173"""
    with pytest.raises(InvalidAddressError) as refused:
        normalize_email(text)
    assert str(refused.value) == f"Expected one address such as ada@example.com{detail}"


@each_case(
    "text, detail",
    [
        ("+351 912345678", "; character 5 is U+0020 (space)."),
        ("+351\u00a0912345678", "; character 5 is U+00A0 (no-break space)."),
        ("+351\u202d912345678", "; character 5 is U+202D (left-to-right override)."),
        ("912345678", "."),
    ],
)
def test_refusal_of_a_number_names_the_invisible_character(text: str, detail: str) -> None:
    with pytest.raises(InvalidAddressError) as refused:
        normalize_phone(text)
    assert str(refused.value).endswith(f"+351912345678{detail}")


@each_case(
    "text", ["a\nb", "a\rb", "a\tb", "a\x00b", "a\x1bb", "a\x7fb", "a\x85b", "a\u2028b", "a\u2029b"]
)
def test_line_breaks_are_control_characters(text: str) -> None:
    assert has_control_characters(text)


@each_case(
    "text",
    ["", "Ada Lovelace", "caf\u00e9", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "$x", "\u202e"],
)
def test_letters_and_emoji_are_no_control_characters(text: str) -> None:
    assert not has_control_characters(text)


PRIVATE_HOSTS = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "api.localhost",
    "printer.local",
    "nas.lan",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL",
    "box.home.arpa",
    "intranet",
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "0.0.0.0",
    "0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0X7F.0x0.0x0.0x1",
    "1.1.1.1",
    "8.8.8.8",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fd00::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[2606:4700:4700::1111]",
    "[fe80::1%25eth0]",
    "[64:ff9b::7f00:1]",
    "[0:0:0:0:0:0:0:1]",
    "[v1.fe80::a]",
    "example.1",
    "example.0x7f",
    "a.0x",
    "printer.local.",
    "loc\u00adal.lo\u00adcal",
    # RFC 6761 and RFC 8375
    "home.arpa",
    "web.ns.svc",
    "localhost.localdomain",
    "b.corp",
    "1.0.0.127.in-addr.arpa",
]

BAD_URLS = [
    "",
    " ",
    "https",
    "https:",
    "https:/",
    "https://",
    "https:///path",
    "//example.com/x",
    "example.com",
    "example.com/page",
    "/page",
    "?q",
    "#x",
    "https:example.com",
    "https://user@example.com",
    "https://user:pass@example.com",
    "https://@example.com",
    "https://example.com@127.0.0.1/",
    "https://example.com:99999/",
    "https://example.com:0/",
    "https://example.com:-1/",
    "https://example.com:abc/",
    "https://example.com:80:80/",
    "https://exa mple.com",
    " https://example.com",
    "https://example.com ",
    "https://[::1",
    "https://example.com\n",
    "https://exam\tple.com",
    "https://example.com\r\nX: y",
    "https://example.com\\@127.0.0.1/",
    "https:\\\\example.com",
    "https://example.com\x00",
    "https://[not-an-address]/",
    "https://example/",
    "https://./",
    "https://?x",
    "https://#x",
]

FORBIDDEN = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "javascript://example.com/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "file:///etc/passwd",
    "intent://x#Intent;scheme=javascript;end",
    "view-source:https://example.com/",
    "filesystem:https://example.com/temporary/x",
    "jar:https://example.com/x!/y",
    "ftp://example.com/file",
    "about:blank",
    "blob:https://example.com/1",
    "DATA:,x",
    "intent:#Intent;scheme=javascript;end",
    "INTENT:x",
    "HTTP://example.com",
]


@each_case(
    "url",
    [
        "https://example.com",
        "https://example.com/",
        "https://example.com:8443/a/b?c=d&e#f",
        "https://cdn.example.com/i.png?w=100%25",
        "HTTPS://EXAMPLE.COM/I.PNG",
        "https://b\u00fccher.example.com/x",
        "https://xn--bcher-kva.example.com/x",
        "https://example.com/\U0001f600",
        "https://1.example.com",
        "https://example.com./",
        "https://127.0.0.1.example.com/",
        "https://localhost.example.com",
        "https://3com.com",
        "https://example.com/path@with-at",
        "https://example.com/?u=user:pass@x",
        "https://a.co",
        "https://internal.example.com/local",
    ],
)
def test_public_https_url_is_accepted_unchanged(url: str) -> None:
    assert check_image_url(url) == url
    assert check_deep_link(url) == url


@each_case(
    "url",
    [
        *(f"https://{host}{port}/x.png" for port in ("", ":8443") for host in PRIVATE_HOSTS),
        *BAD_URLS,
        *FORBIDDEN,
    ],
)
@each_case("check", [check_image_url, check_deep_link])
def test_private_host_malformed_url_or_dangerous_scheme_is_refused(
    url: str, check: Callable[[str], str]
) -> None:
    with pytest.raises(InvalidLinkError):
        check(url)


@each_case(
    "host",
    [
        "printer.local.",
        "metadata.google.internal.",
        "nas.lan.",
        "".join(chr(ord(c) + 0xFEE0) for c in "127.0.0.1"),
        "127\u30020\u30020\u30021",
        "metadata.google\u3002internal",
        "%31%32%37.0.0.1",
        "\u24db\u24de\u24d2\u24d0l.\u24dbocal",
    ],
)
def test_other_spelling_of_a_private_host_is_refused(host: str) -> None:
    """Browsers normalize a final dot, full-width digits, other full stops, and %-escapes."""
    with pytest.raises(InvalidLinkError):
        check_image_url(f"https://{host}/x.png")


@each_case(
    "link",
    [
        *(f"https://example.com/a{c}b" for c in "\x7f\x80\x9f\u2028\u2029\u00a0"),
        "http://example.com/page",
        "http://localhost/x",
        "http://10.0.0.1/",
        "http://user@example.com/",
        ":",
        "1app://x",
        "-app://x",
        "app_x://y",
        "\u00e4pp://x",
        "a" * 40 + "://x",
    ],
)
def test_control_character_private_http_url_or_invalid_scheme_is_refused(link: str) -> None:
    with pytest.raises(InvalidLinkError):
        check_deep_link(link)


@each_case(
    "link",
    [
        "app://orders/12345",
        "myapp:home",
        "com.example.app://x",
        "app+beta://x?y#z",
        "mailto:ada@example.com",
        "tel:+351912345678",
        "APP://Orders",
        "app://127.0.0.1/x",
    ],
)
def test_deep_link_can_have_any_app_scheme(link: str) -> None:
    assert check_deep_link(link) == link


@each_case("url", ["http://example.com/i.png", "app://image", "wss://example.com"])
def test_image_url_must_be_https(url: str) -> None:
    with pytest.raises(InvalidLinkError, match="https://"):
        check_image_url(url)


def test_allowed_schemes_are_named() -> None:
    check_public_url("http://example.com", schemes=("https", "http"))
    with pytest.raises(InvalidLinkError, match="https://"):
        check_public_url("http://example.com", schemes=("https",))


@given(st.text(max_size=60) | st.text(max_size=40).map(lambda text: f"https://{text}"))
def test_any_text_is_a_link_or_refused(text: str) -> None:
    for check in (check_image_url, check_deep_link):
        with contextlib.suppress(InvalidLinkError):
            assert check(text) == text
