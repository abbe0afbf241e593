"""Mails as other parsers and strict servers see them."""

import email.base64mime
import email.policy
import email.quoprimime
import re
from email.header import decode_header
from email.message import EmailMessage
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError
from domain.mailboxes import Mailbox, parse_mailbox
from notifyproject.platform.event_loop import run
from providers.contract import Message
from providers.mail import AttachmentFile
from providers.mime import (
    MAX_LINE,
    MAX_WORD,
    address_header,
    build_mail,
    build_message,
    text_header,
)
from providers.sendgrid.provider import _attachment_type
from tests.support.factories.notifications import outbound
from tests.support.fakes.smtp_server import MailServer, mail_server
from tests.support.providers import sendgrid
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

SENDER = "Notifications <notifications@example.com>"
# RFC 5322, 2.1.1 and RFC 6152: no octet over 127, no line over 998 octets.
TEXTS = {
    "accent": "Ol\u00e1",
    # https://github.com/Exim/exim/wiki, and texts pasted from word processors.
    "line separator": ("palavra " * 75 + "\u2028") * 3,
    "paragraph separator": ("palavra " * 75 + "\u2029") * 3,
    "next line": ("palavra " * 75 + "\u0085") * 3,
    "vertical tab": ("palavra " * 75 + "\u000b") * 3,
    "form feed": ("palavra " * 75 + "\u000c") * 3,
    "file separators": "\u001c\u001d\u001e" + "x" * 2000,
    "one long word": "x" * 5000,
    "carriage returns": "a\rb\r\nc\nd",
    "trailing blanks": "a  \nb\t\n",
    "dots": "x\n.\n..dots\n",
    # https://github.com/PHPMailer/PHPMailer/issues/2227: a dot after a soft line break.
    "dots everywhere": "https://www.example.com/" + "a.b" * 100 + "." * 200,
    "from": "From me\n>From you\n" + "From " * 100 + "\n" + "From " + "x" * 200 + "\nFrom",
    "chinese": "\u6f22\u5b57" * 700,
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 200,
    "equals": "=3D = =\n=?utf-8?q?x?=",
    "nothing": "",
    "nul": "a\u0000b",
}
NAMES = {
    "ascii": "Ada Lovelace",
    "quoted": 'O\'Brien, "Ada" (x) <y>; z',
    "backslash": 'a\\b"c',
    "cyrillic": "\u041e\u0431\u0449\u0435\u0441\u0442\u0432\u043e \u0441 " * 5 + "\u00ab\u00bb",
    "chinese": "\u6f22\u5b57" * 17,
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 10,
    "flags": "\U0001f1f5\U0001f1f9" * 30,
    "marks": "e\u0301" * 60,
    "joiners": "\u200d" * 40,
    "long": "a" * 250,
    "many words": "ab cd " * 40 + "e",
    "encoded word": "=?utf-8?q?Bank_Support?=",
    "half an encoded word": "a =?utf-8?q? b",
    "line separator": "Caf\u00e9\u2028x",
    "blanks": "a  b",
    "arabic": "\u0645\u0631\u062d\u0628\u0627 " * 12 + "!",
    "address": "ada@example.com",
    "none": "",
}


def built(**fields: Any) -> bytes:
    message = {"subject": "Paid", "text": "Your payment has arrived.", "html": None}
    names = ("subject", "text", "html")
    message |= {name: fields.pop(name) for name in names if name in fields}
    options = {"sender": SENDER, "default_reply_to": None, "files": ()}
    options |= {name: fields.pop(name) for name in tuple(options) if name in fields}
    return build_mail(outbound(message=Message(**message), **fields), **options).raw


def parsed(raw: bytes) -> EmailMessage:
    return email.message_from_bytes(raw, policy=email.policy.default)


def decoded_words(value: str) -> str:
    """Decode a header as RFC 2047, 6.2 says: blanks between encoded words count for nothing."""
    unfolded = re.sub(r"\r\n(?=[ \t])", "", value)
    joined = re.sub(r"(\?=)[ \t]+(=\?)", r"\1\2", unfolded)

    def decode(found: re.Match[str]) -> str:
        kind, text = found[1].lower(), found[2]
        raw = (
            email.base64mime.decode(text)
            if kind == "b"
            else email.quoprimime.header_decode(text).encode("latin-1")
        )
        return raw.decode()

    return re.sub(r"=\?utf-8\?([bq])\?([^?]*)\?=", decode, joined, flags=re.IGNORECASE)


def check_lines(raw: bytes) -> None:
    assert raw.isascii()
    lines = raw.split(b"\r\n")
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    assert max(map(len, lines)) <= 998
    head = raw.partition(b"\r\n\r\n")[0]
    assert not re.search(rb"\r\n[ \t]*(?:\r\n|$)", head)
    for line in head.split(b"\r\n"):
        # RFC 2047, 2.
        assert b"=?" not in line or len(line) <= MAX_LINE
        assert all(len(word) <= MAX_WORD for word in re.findall(rb"=\?\S*?\?[bq]\?\S*?\?=", line))
        assert not re.fullmatch(rb"(?:From|To|Reply-To): *", line)


@each_case("text", TEXTS.values())
@each_case("html", [False, True])
def test_any_text_arrives_unchanged_in_seven_bits(text: str, html: bool) -> None:
    raw = built(text=text, html=f"<p>{text}</p>" if html else None)
    check_lines(raw)
    written = raw.partition(b"\r\n\r\n")[2].split(b"\r\n")
    assert max(map(len, written)) <= MAX_LINE
    # https://github.com/jstedfast/MimeKit/issues/431
    assert not any(line.startswith(b"From ") or line.endswith((b" ", b"\t")) for line in written)
    # Python's own lines, since its parser takes line breaks as they are.
    expected = re.sub(r"\r\n|\r", "\n", text)
    parts = [part for part in parsed(raw).walk() if not part.is_multipart()]
    contents = [part.get_payload(decode=True).decode() for part in parts]
    shown = [re.sub(r"\r\n", "\n", content).removesuffix("\n") for content in contents]
    assert (
        shown == [expected.removesuffix("\n"), f"<p>{expected}</p>"][: 1 + html]
        or shown
        == [
            expected,
            f"<p>{expected}</p>",
        ][: 1 + html]
    )
    assert {part.get_content_charset() for part in parts} == {"utf-8"}


@each_case("name", NAMES.values())
def test_any_name_is_made_of_short_words(name: str) -> None:
    raw = built(recipient_name=name, default_reply_to=f"{name} <a@example.com>", subject=name)
    check_lines(raw)
    header, value = address_header("To", name, "ada@example.com")
    assert header == "To"
    shown = decoded_words(value).removesuffix("<ada@example.com>").strip()
    if "=?" not in value and shown.startswith('"'):
        shown = re.sub(r"\\(.)", r"\1", shown[1:-1])
    assert (shown or value) == (name or "ada@example.com")


@each_case(
    "subject",
    [
        *NAMES.values(),
        "Zusammenfassung Ihrer Bestellung \u00fcber Stra\u00dfenbahnfahrscheine ist unterwegs und",
        "Re: [ticket] " + "long " * 80 + "x",
        "x" * 900,
        "x" * 3000,
        "trailing ",
        " leading",
        "a\tb",
        "a  b   c    d" * 10,
        "?= =?",
        # https://github.com/zendframework/zend-mime/pull/18
        "\u00e4" * 15 + " \u00e4",
        # https://github.com/nodemailer/buildmail/issues/11
        "\u0411\u0435\u0442\u0430-\u043f\u0440\u043e\u0434: 2422750 \u043e\u0442 2015-07-20",
        # https://github.com/PHPMailer/PHPMailer/issues/1949
        "WebMonitor: ramblers-webs.org.uk  Change Report (1106)",
        # https://github.com/PHPMailer/PHPMailer/issues/2115
        "=?UTF-8?B?Qm9sZGVybWFpbCAyLjAgaXMgTm93IEF2YWlsYWJsZSE=?=",
        # https://github.com/productdevbook/unemail/issues/121
        "Zusammenfassung Ihrer Bestellung \u2014 " * 40 + "x",
    ],
)
def test_any_subject_is_shown_as_it_is(subject: str) -> None:
    raw = built(subject=subject)
    check_lines(raw)
    assert not raw.startswith(b"Subject: \r\n ")
    assert b"??=" not in raw
    assert decoded_words(text_header("Subject", subject)[1]) == subject
    if subject.strip() == subject and "\u2028" not in subject:
        assert parsed(raw)["Subject"] == subject


@each_case("subject", ["a\r\nBcc: eve@example.com", "a\nb", "a\rb"])
def test_line_break_in_a_header_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        text_header("Subject", subject)
    with pytest.raises(ValueError, match="line break"):
        address_header("To", subject, "ada@example.com")


@each_case(
    "address", ["", "a", "a@b\r\nRCPT TO:<e@x>", "a b@c", "<a@b>", "a@b,c@d", "\u00e9@x.example"]
)
def test_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        address_header("To", "Ada", address)


@each_case(
    "configured, name",
    [
        ("Shop <shop@example.com>", "Shop"),
        ("shop@example.com", ""),
        ('"Shop, Inc." <shop@example.com>', "Shop, Inc."),
        ("Shop, Inc. <shop@example.com>", "Shop, Inc."),
        # https://github.com/TRC-Loop/Pelton/issues/312
        ("Support (Billing) <shop@example.com>", "Support (Billing)"),
        # https://github.com/ckan/ckan/issues/7508
        ("Dept of A, B, and C <shop@example.com>", "Dept of A, B, and C"),
        ("Caf\u00e9 <shop@example.com>", "Caf\u00e9"),
        ("=?utf-8?q?Caf=C3=A9?= <shop@example.com>", "Caf\u00e9"),
        ("<shop@example.com>", ""),
    ],
)
def test_configured_sender_has_its_name_at_both_providers(configured: str, name: str) -> None:
    assert parse_mailbox(configured) == Mailbox(name=name, address="shop@example.com")
    raw = built(sender=configured)
    (address,) = parsed(raw)["From"].addresses
    assert (address.display_name, address.addr_spec) == (name, "shop@example.com")
    body = sendgrid.account(sender=configured).body(outbound())
    assert body["from"] == {"email": "shop@example.com"} | ({"name": name} if name else {})


def test_both_providers_say_that_the_mail_is_automatic() -> None:
    """RFC 3834, 5: vacation programs don't answer such mail."""
    assert parsed(built())["Auto-Submitted"] == "auto-generated"
    body = sendgrid.account().body(outbound())
    (personalization,) = body["personalizations"]
    assert personalization["headers"]["Auto-Submitted"] == "auto-generated"


@each_case(
    "content_type, filename, content, expected",
    [
        # RFC 6047, 2.4: without its method, no client offers to accept an invitation.
        ("text/calendar; method=REQUEST", "a.ics", "Ol\u00e1", ("REQUEST", "utf-8")),
        ("text/csv; charset=utf-8", "a.csv", "Ol\u00e1", (None, "utf-8")),
        ("text/csv; charset=iso-8859-1", "a.csv", "x", (None, "iso-8859-1")),
        ("text/csv", "a.csv", "Ol\u00e1", (None, "utf-8")),
        ("application/pdf", "Rechnung \u00fcber 5 \u20ac.pdf", "x", (None, None)),
        ("application/pdf", "\u6f22\u5b57" * 40 + ".pdf", "x", (None, None)),
        ("application/pdf", "b c; d.pdf", "x", (None, None)),
        ("application/pdf", "x" * 200 + ".pdf", "x", (None, None)),
    ],
)
def test_attachment_keeps_its_type_name_and_octets(
    content_type: str, filename: str, content: str, expected: tuple[str | None, str | None]
) -> None:
    octets = content.encode("iso-8859-1" if "8859" in content_type else "utf-8") + b"\r\n\x00\xff"
    if expected[1] == "utf-8":
        octets = content.encode() + b"\r\n"
    file = AttachmentFile(filename=filename, content_type=content_type, content=octets)
    raw = built(files=(file,))
    check_lines(raw)
    (part,) = parsed(raw).iter_attachments()
    assert part.get_content_type() == content_type.partition(";")[0]
    assert (part.get_param("method"), part.get_content_charset()) == expected
    assert part.get_filename() == filename
    assert part.get_payload(decode=True) == octets


def test_text_of_unknown_encoding_gets_no_charset() -> None:
    for octets in (b"\xe9", b"\x1b$B4A;z\x1b(B"):
        file = AttachmentFile(filename="a.txt", content_type="text/plain", content=octets)
        raw = build_message([], text="", html=None, files=(file,))
        (part,) = parsed(raw).iter_attachments()
        assert part.get_param("charset") is None


@pytest.mark.usefixtures("opened")
class TestStrictServer:
    """A server that offers no 8BITMIME and limits its lines, as Exim of Debian does."""

    def test_mail_is_taken(self) -> None:
        server = MailServer({"EHLO": "250-mail.example.com\r\n250 SIZE 52428800"}, is_strict=True)
        with mail_server(server) as (smtp, _):
            for text in TEXTS.values():
                message = Message(subject="Ol\u00e1", text=text, html=f"<p>{text}</p>")
                run(smtp.send(outbound(message=message, recipient_name="\u6f22"), timeout=LIMIT))
        assert len(server.mails) == len(TEXTS)
        assert not any("BODY" in command for command in server.commands)

    def test_half_a_character_is_not_sent(self) -> None:
        server = MailServer(is_strict=True)
        with mail_server(server) as (smtp, running), pytest.raises(PermanentError) as error:
            run(smtp.send(outbound(message=Message(subject="x", text="\ud800")), timeout=LIMIT))
        assert error.value.code is FailureCode.RENDER_FAILED
        assert running.connections == 0


@each_case(
    "filename",
    [
        "Rechnung.pdf",
        "my file (1); final.pdf",
        'say "hi".pdf',
        # https://github.com/jstedfast/MimeKit/issues/186, https://github.com/nodemailer/buildmail/issues/4
        "Pr\u00fcfbericht Q1.pdf",
        # https://github.com/jstedfast/MailKit/issues/277
        "\u4eca\u65e5\u306f\u4e16\u754c" * 12 + ".txt",
        # https://github.com/jstedfast/MailKit/issues/734
        "\ud55c\uae00\uc774\ub984.xlsx",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467.png",
        "=?utf-8?q?x?=.txt",
        "x" * 200 + ".txt",
    ],
)
def test_old_mail_clients_find_the_name_of_an_attachment(filename: str) -> None:
    """Clients without RFC 2231 read ``name`` alone, with encoded words."""
    file = AttachmentFile(filename=filename, content_type="application/pdf", content=b"x")
    raw = build_mail(outbound(), sender=SENDER, default_reply_to=None, files=[file]).raw
    assert all(len(line) <= MAX_LINE for line in raw.split(b"\r\n"))
    (part,) = parsed(raw).iter_attachments()
    assert part.get_filename() == filename
    name = email.message_from_bytes(raw).get_payload()[1].get_param("name")
    decoded = "".join(
        text.decode(charset or "ascii") if isinstance(text, bytes) else text
        for text, charset in decode_header(name.replace("\r\n", ""))
    )
    assert decoded == filename


def test_type_with_a_name_keeps_it() -> None:
    kind = 'text/calendar; method=REQUEST; name="meeting.ics"'
    file = AttachmentFile(filename="invite.ics", content_type=kind, content=b"BEGIN:VCALENDAR")
    raw = build_mail(outbound(), sender=SENDER, default_reply_to=None, files=[file]).raw
    (part,) = parsed(raw).iter_attachments()
    assert part.get_filename() == "invite.ics"
    assert part.get_content_type() == "text/calendar"
    assert dict(part["Content-Type"].params) == {
        "method": "REQUEST",
        "name": "meeting.ics",
        "charset": "utf-8",
    }


@each_case(
    "given, sent",
    [
        ("text/calendar; charset=utf-8; method=REQUEST", "text/calendar; method=REQUEST"),
        ("text/csv; charset=utf-8", "text/csv"),
        ("application/pdf", "application/pdf"),
        ('text/calendar; method="A B"', "text/calendar"),
    ],
)
def test_sendgrid_gets_no_parameter_but_the_method_of_an_invitation(given: str, sent: str) -> None:
    """https://github.com/sendgrid/sendgrid-nodejs/issues/1313"""
    assert _attachment_type(given) == sent
