"""Addresses, languages, links, and file types as people and systems write them."""

from email import message_from_bytes, policy
from typing import Any

import pytest

from domain.media_types import guess_media_type, parse_media_type
from notifications.validation import InvalidAddressError, normalize_email, normalize_phone
from providers.sendgrid.provider import _attachment_type
from tests.support.clients.api import App, pointers
from tests.support.tables import each_case


@each_case(
    "text",
    [
        *(
            " ada@example.com",
            "ada@example.com\n",
            "\u00a0ada@example.com\t",
            "\ufeffada@example.com",
        ),
        *("ada@example.com\u200b", "\u202aada@example.com\u202c", "\u3000ada@example.com"),
    ],
)
def test_blanks_and_invisible_characters_at_the_ends_of_an_address_are_cut(text: str) -> None:
    """https://github.com/alphagov/notifications-utils/pull/471"""
    assert normalize_email(text) == "ada@example.com"
    number = text.replace("ada@example.com", "+351912345678")
    assert normalize_phone(number) == "+351912345678"


@pytest.mark.parametrize(
    ("number", "stored"),
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


@pytest.mark.parametrize(
    ("text", "detail"),
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


def test_address_with_blanks_is_the_suppressed_one(app: App) -> None:
    app.put("/suppressions/whatsapp/+351912345678", {})
    app.put("/suppressions/email/ada@example.com", {})
    recipient = {"email": " ada@example.com\u200b", "phone": "\u202a+351912345678\u202c"}
    sent = app.notify(recipient=recipient, channels=["email", "whatsapp"]).json()
    assert {delivery["failure_code"] for delivery in sent["delivery"]} == {"suppressed"}
    assert app.get("/suppressions/email/%20ada@example.com%20").json()["results"]


FORMS = {
    **dict.fromkeys(
        ("pt_BR", "PT_br", "pt-br", "pt_BR.UTF-8", "pt_BR@euro", "pt-BR-u-nu-latn"), "pt-BR"
    ),
    "PT": "pt",
    "Pt": "pt",
    "pt-Latn-BR": "pt-Latn-BR",
    "iw": "he",
    "iw_IL": "he-IL",
    "in": "id",
    "no": "nb",
    "zh_hans_CN": "zh-Hans-CN",
    "es_419": "es-419",
    "sr-Latn": "sr-Latn",
}


@pytest.mark.parametrize(("given", "stored"), FORMS.items())
def test_language_is_stored_in_its_usual_form_wherever_it_is_accepted(
    app: App, given: str, stored: str
) -> None:
    """RFC 5646 2.1.1, and https://github.com/wikimedia/jquery.i18n/issues/120."""
    person = {"email": "ada@example.com", "locale": given}
    assert app.put("/recipients/ada", person).json()["locale"] == stored
    assert app.notify(recipient=person).json()["recipient"]["locale"] == stored
    device = {"user_id": "ada", "device_token": "a-token-of-ada", "platform": "ios"}
    shown = app.put("/devices", {**device, "language": given}).json()
    assert shown["language"] == stored
    path = f"/devices/{shown['id']}"
    changed = app.send(path, f'{{"language": "{given}"}}'.encode(), method="PATCH").json()
    assert changed["language"] == stored


@pytest.mark.parametrize(
    "link",
    [
        *(
            "http://example.com/orders",
            "HTTP://example.com",
            "intent:#Intent;scheme=javascript;end",
        ),
        *(
            "view-source:https://example.com",
            "filesystem:https://example.com/x",
            "blob:x",
            "INTENT:x",
        ),
    ],
)
def test_link_that_mail_would_leave_out_or_that_wraps_another_is_refused(
    app: App, link: str
) -> None:
    answer = app.notify(content={"subject": "s", "body": "b", "deep_link": link})
    assert pointers(answer) == {"/content/deep_link": "invalid_url"}


TYPES = {
    "text/calendar; method=REQUEST": "text/calendar; method=REQUEST",
    "TEXT/Calendar;METHOD=REQUEST": "text/calendar; method=REQUEST",
    "text/csv; charset=utf-8": "text/csv; charset=utf-8",
    'text/calendar; charset="UTF-8"; method=CANCEL': "text/calendar; charset=UTF-8; method=CANCEL",
    'application/x-y; a="b c;d"': 'application/x-y; a="b c;d"',
    'application/x-y; a="q\\"q"': 'application/x-y; a="q\\"q"',
    "application/pdf": "application/pdf",
}


@pytest.mark.parametrize(("given", "stored"), TYPES.items())
def test_parameters_of_a_media_type_are_kept(
    app: App, settings: Any, given: str, stored: str
) -> None:
    """https://github.com/sendgrid/sendgrid-php/issues/250"""
    settings.ATTACHMENT_HOSTS = ["files.example.com"]
    file = {"url": "https://files.example.com/a", "filename": "a", "content_type": given}
    content = {"subject": "s", "body": "b", "attachments": [file]}
    sent = app.notify(content=content).json()["content"]["attachments"]
    assert [item["content_type"] for item in sent] == [stored]
    parsed = message_from_bytes(f"Content-Type: {stored}\n\n".encode(), policy=policy.default)
    kind = parse_media_type(given)
    assert kind is not None
    assert parsed.get_content_type() == kind.name
    assert dict(parsed["content-type"].params) == dict(kind.parameters)


@each_case(
    "filename, kind",
    [
        ("invite.ics", "text/calendar; charset=utf-8"),
        ("Vertrag.DOCX", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("a.odt", "application/vnd.oasis.opendocument.text"),
        ("README.md", "text/markdown; charset=utf-8"),
        ("a.webp", "image/webp"),
        ("ticket.pkpass", "application/vnd.apple.pkpass"),
        ("a.pdf", "application/pdf"),
        ("docx", "application/octet-stream"),
        ("a", "application/octet-stream"),
    ],
)
def test_type_is_guessed_from_the_name(filename: str, kind: str) -> None:
    assert str(guess_media_type(filename)) == kind


@pytest.mark.parametrize(
    ("given", "sent"),
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
