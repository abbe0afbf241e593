"""What is read in a provider's answer: Retry-After, its excerpt, and its object."""

from datetime import UTC, datetime, timedelta
from typing import Any

from providers import http, http_client
from tests.support.tables import each_case
from tests.support.waiting import computing

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@each_case(
    "value, pause",
    [
        ("0", 0.0),
        ("1", 1.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        *((value, 86_400.0) for value in ("86400", "86401", "9" * 400)),
        ("Sat, 21 Nov 2026 12:02:00 GMT", 120.0),
        ("Saturday, 21-Nov-26 12:02:00 GMT", 120.0),
        ("Sat Nov 21 12:02:00 2026", 120.0),
        ("Sun, 21 Nov 2027 12:00:00 GMT", 86_400.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", None),
        ("Fri, 20 Nov 2026 12:00:00 GMT", None),
        ("", None),
        ("   ", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("1e3", None),
        ("Sat, 31 Feb 2026 12:00:00 GMT", None),
        ("\u0661\u0662", None),
        ("\x00", None),
        ("Sat, 21 Nov 2026 12:02:00 +99999999999999", None),
        ("21 Nov 99999999999999 12:02:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, pause: float | None) -> None:
    assert http.retry_after_seconds({"retry-after": value}, now=NOW) == pause


@each_case(
    "seconds, pause",
    [(-1.0, None), (0.0, None), (0.5, 0.5), (86_400.0, 86_400.0), (1e12, 86_400.0)],
)
def test_pause_is_at_most_a_day(seconds: float, pause: float | None) -> None:
    assert http.clamp_pause(seconds) == pause


@each_case(
    "text, redacted",
    [
        ("mailbox ada@example.com is full", "mailbox [address] is full"),
        ("<ada@example.com>: unknown", "<[address]>: unknown"),
        ('{"to": "ada+tag@sub.example.com"}', '{"to": "[address]"}'),
        ("call +351 912 345 678 now", "call [address] now"),
        ("call +351912345678", "call [address]"),
        ("(351) 912-345-678", "([address]"),
        ("o'neill@example.com is unknown", "[address] is unknown"),
        ('"ada lovelace"@example.com', "[address]"),
        ("/unsubscribe?to=ada%40example.com", "[address]"),
        ("550 5.1.1 +351912345678 on 2026-11-21.", "550 5.1.1 [address] on 2026-11-21."),
        ("+6834002", "[address]"),
        ("queued as 1234567", "queued as 1234567"),
        *((kept, kept) for kept in ("nothing to hide", "", "550 5.1.1 no such user")),
        *((kept, kept) for kept in ("since 2026-11-21", "421 4.7.0 (try later)")),
    ],
)
def test_addresses_and_numbers_are_redacted(text: str, redacted: str) -> None:
    assert http.redact(text) == redacted


@each_case(
    "text",
    ["x", "1", '"', '"a', "1   ", "1    ", "@", "a@", "%40", "+1", "+", "550 5.", "a%4", "("],
)
def test_redaction_takes_linear_time(text: str) -> None:
    """An answer may have 64 KB of any text."""
    with computing(at_most=0.5):
        http.redact(text * (http_client.MAX_BODY // len(text)))


def test_excerpt_is_short_and_redacted() -> None:
    body = b"x" * 980 + b" ada@example.com is unknown"
    answer = http.Response(status=550, headers={}, body=body)
    assert len(answer.excerpt) <= http.EXCERPT_LENGTH + len("[address]")
    assert "ada" not in answer.excerpt


def test_excerpt_contains_no_partial_address() -> None:
    for length in range(http.EXCERPT_LENGTH - 20, http.EXCERPT_LENGTH):
        body = b"x" * length + b" ada.lovelace@example.com"
        assert "ada" not in http.Response(status=550, headers={}, body=body).excerpt


def test_undecodable_body_is_shown_with_replacements() -> None:
    assert http.Response(status=500, headers={}, body=b"caf\xe9").text == "caf\ufffd"


def test_retry_after_date_is_relative_to_the_given_time() -> None:
    header = {"retry-after": "Sat, 21 Nov 2026 12:02:00 GMT"}
    assert http.retry_after_seconds(header, now=NOW + timedelta(seconds=90)) == 30.0
    assert http.retry_after_seconds({}, now=NOW) is None


@each_case(
    "body, decoded",
    [
        (b'{"code": 1}', {"code": 1}),
        (b'{"code": 1, "text": "\\ud83d"}', {"code": 1, "text": "?"}),
        (b'{"code": 1, "text": "a\\ude00b"}', {"code": 1, "text": "a?b"}),
        (b'{"code": 1, "text": "\\ud83d\\ude00 \\ud83d"}', {"code": 1, "text": "\U0001f600 ?"}),
        (b'{"code": 1, "text": "a\xff"}', {"code": 1, "text": "a\ufffd"}),
        (b'{"code": 1, "text": "\xf0\x9f\x98"}', {"code": 1, "text": "\ufffd"}),
        (b'{"\\ud83d": {"code": [1]}}', {"?": {"code": [1]}}),
        *((body, {}) for body in (b"", b"[]", b'"\\ud83d"', b"<html>\xff", b'{"a": NaN}', b"\xff")),
        (b'{"a": ' + b"9" * 5_000 + b', "b": "\xff"}', {}),
        (b'{"a": ' * 20_000, {}),
    ],
)
def test_object_is_decoded_in_spite_of_a_cut_text(body: bytes, decoded: dict[str, Any]) -> None:
    assert http.decode_object(body) == decoded
