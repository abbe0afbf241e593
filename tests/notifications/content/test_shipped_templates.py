"""Shipped templates on every channel and in both languages."""

import re
from itertools import product
from typing import Any

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.sms import Encoding, encode
from notifications.catalog.shipped_types import ShippedType, shipped_types
from notifications.content import linting, templates
from notifications.content.rendering import exists, render_message, render_text
from notifications.content.templates import DEFAULT_LANGUAGE, Part
from providers.contract import Message
from tests.support.factories.notifications import personal_types
from tests.support.tables import each_case

TEMPLATED = [default for default in personal_types() if exists(default.slug)]
BY_SLUG = {default.slug: default for default in shipped_types()}
LANGUAGES = (DEFAULT_LANGUAGE, "pt")
PORTUGUESE = re.compile(r"[\u00e3\u00e7\u00e1\u00e9\u00ed\u00f3\u00fa\u00ea\u00e0]")


def rendered(
    slug: str, channel: Channel, *, locale: str = "en", zone: str | None = None, **data: Any
) -> Message:
    recipient = Recipient(name="Ada", locale=locale, timezone=zone)
    known = {**BY_SLUG[slug].definition.example_data, **data}
    subject, body = render_text(name=slug, data=known, recipient=recipient)
    content = Content(subject=subject, body=body, template_id=slug)
    return render_message(channel=channel, content=content, data=known, recipient=recipient)


@each_case("default", TEMPLATED)
def test_templates_have_every_part_in_both_languages(default: ShippedType) -> None:
    parts = templates.shipped_texts(default.slug)
    assert set(parts) == set(LANGUAGES)
    for language in LANGUAGES:
        # A push title would repeat the subject, and rooms show the text.
        own = {Part.PUSH_TITLE, Part.ROOM, Part.ROOM_TITLE}
        assert set(parts[language]) == {*Part} - own
    sensitive = frozenset(default.definition.sensitive_variables)
    faults = linting.lint_template(
        name=default.slug,
        parts=parts,
        example_data=default.definition.example_data,
        sensitive=sensitive,
    )
    assert faults == []


@each_case("channel", Channel)
@each_case("default", TEMPLATED)
def test_every_channel_has_english_and_portuguese(default: ShippedType, channel: Channel) -> None:
    english = rendered(default.slug, channel)
    portuguese = rendered(default.slug, channel, locale="pt-BR")
    assert english.text != portuguese.text
    assert not PORTUGUESE.search(english.text)
    for message in (english, portuguese):
        assert message.subject
        assert message.text == message.text.strip()
        for text in (message.subject, message.text, message.html or ""):
            assert "{{" not in text
            assert "{%" not in text
            assert "  " not in text or text == message.html
    if channel is Channel.EMAIL:
        assert '<html lang="pt"' in str(portuguese.html)


@each_case("default", TEMPLATED)
def test_text_message_is_one_part_in_each_language(default: ShippedType) -> None:
    """Portuguese letters such as ã and ç would make it Unicode, with 70 characters a part."""
    for locale in ("en", "pt"):
        message = rendered(default.slug, Channel.SMS, locale=locale)
        assert message.units == 1
        assert encode(message.text).encoding is Encoding.GSM_7


@each_case("default", TEMPLATED)
def test_html_shows_the_values_of_the_text(default: ShippedType) -> None:
    for locale in ("en", "pt"):
        message = rendered(default.slug, Channel.EMAIL, locale=locale)
        for name, value in default.definition.example_data.items():
            if not name.endswith(("_date", "_time", "_start", "_end")):
                assert str(value) in str(message.html), name


@each_case("slug", ["mfa_code", "user_activation", "forgot_password"])
@each_case("channel", Channel)
def test_code_is_on_every_channel(slug: str, channel: Channel) -> None:
    for locale in ("en", "pt"):
        message = rendered(slug, channel, locale=locale)
        assert "123456" in f"{message.subject} {message.text}"


@each_case(
    "slug, variable, english, portuguese",
    [
        ("contest_reminder", "hours_until_start", "hour", "hora"),
        ("contest_ending", "minutes_left", "minute", "minuto"),
        ("mfa_code", "expires_in", "minute", "minuto"),
    ],
)
@each_case("form", [int, str, float])
def test_numbers_have_singular_and_plural(
    slug: str, variable: str, english: str, portuguese: str, form: type
) -> None:
    for (locale, word), channel in product((("en", english), ("pt", portuguese)), Channel):
        singular = rendered(slug, channel, locale=locale, **{variable: form(1)})
        two = rendered(slug, channel, locale=locale, **{variable: form(2)})
        assert re.search(rf"\b1(\.0)? {word}\b", f"{singular.subject} {singular.text}")
        assert re.search(rf"\b2(\.0)? {word}s\b", f"{two.subject} {two.text}")
        assert f"1 {word}s" not in f"{singular.subject}{singular.text}{singular.html}"


def test_time_is_in_the_recipients_zone() -> None:
    for start in ("2026-07-01T14:35:00Z", "2026-07-01T16:35:00+02:00", "2026-07-01T14:35:00"):
        text = rendered("contest_reminder", Channel.IN_APP, start_time=start).text
        assert "at 14:35 (UTC) on 1 July 2026" in text
        tokyo = {"zone": "Asia/Tokyo", "start_time": start}
        text = rendered("contest_reminder", Channel.IN_APP, **tokyo).text
        assert "at 23:35 (Asia/Tokyo) on 1 July 2026" in text


def test_maintenance_on_one_day_names_the_day_once() -> None:
    text = rendered("system_alert", Channel.IN_APP).text
    assert "on 25 December 2026 from 02:00 to 04:00 (UTC)" in text
    text = rendered("system_alert", Channel.IN_APP, maintenance_end="2026-12-26T04:00:00Z").text
    assert "from 25 December 2026, 02:00, to 26 December 2026, 04:00 (UTC)" in text


def test_greeting_needs_a_name() -> None:
    nameless = Recipient()
    for slug in ("order_shipped", "kyc_approved", "kyc_rejected", "user_activation"):
        data = BY_SLUG[slug].definition.example_data
        assert rendered(slug, Channel.EMAIL).text.startswith("Hello Ada,\n\n")
        assert render_text(name=slug, data=data, recipient=nameless)[1][:2] in ("Yo", "We")
