"""What the shipped types say, on every channel and in both languages."""

import re
from itertools import product
from typing import Any

import pytest

from domain.content import Content, Recipient
from domain.states import Channel
from notifications.catalog.default_types import DEFAULT_TYPES, DefaultType
from notifications.content import linting, templates
from notifications.content.rendering import exists, render_message, render_text
from notifications.content.templates import DEFAULT_LANGUAGE, Part
from providers.contract import Message

TEMPLATED = [default for default in DEFAULT_TYPES if exists(default.slug)]
BY_SLUG = {default.slug: default for default in DEFAULT_TYPES}
LANGUAGES = (DEFAULT_LANGUAGE, "pt")
PORTUGUESE = re.compile(r"[\u00e3\u00e7\u00e1\u00e9\u00ed\u00f3\u00fa\u00ea\u00e0]")


def said(
    slug: str, channel: Channel, *, locale: str = "en", zone: str | None = None, **data: Any
) -> Message:
    """Return what a type says on a channel, with its example where ``data`` has nothing."""
    person = Recipient(name="Ada", locale=locale, timezone=zone)
    known = {**BY_SLUG[slug].example_data, **data}
    subject, body = render_text(name=slug, data=known, recipient=person)
    content = Content(subject=subject, body=body, template_id=slug)
    return render_message(channel=channel, content=content, data=known, recipient=person)


@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_every_part_is_there_in_both_languages_and_would_be_taken_if_it_were_stored(
    default: DefaultType,
) -> None:
    parts = templates.shipped_texts(default.slug)
    assert set(parts) == set(LANGUAGES)
    for language in LANGUAGES:
        # A title of its own would only say the subject again.
        assert set(parts[language]) == {*Part} - {Part.PUSH_TITLE}
    sensitive = frozenset(default.sensitive_variables)
    faults = linting.lint_template(
        name=default.slug, parts=parts, example_data=default.example_data, sensitive=sensitive
    )
    assert faults == []


@pytest.mark.parametrize("channel", Channel)
@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_every_channel_says_it_in_english_and_in_portuguese(
    default: DefaultType, channel: Channel
) -> None:
    english = said(default.slug, channel)
    portuguese = said(default.slug, channel, locale="pt-BR")
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


@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_the_html_of_mail_shows_what_the_text_shows(default: DefaultType) -> None:
    for locale in ("en", "pt"):
        message = said(default.slug, Channel.EMAIL, locale=locale)
        for name, value in default.example_data.items():
            if not name.endswith(("_date", "_time", "_start", "_end")):
                assert str(value) in str(message.html), name


@pytest.mark.parametrize("slug", ["mfa_code", "user_activation", "forgot_password"])
@pytest.mark.parametrize("channel", Channel)
def test_a_code_is_on_every_channel_before_anything_is_opened(slug: str, channel: Channel) -> None:
    for locale in ("en", "pt"):
        message = said(slug, channel, locale=locale)
        assert "123456" in f"{message.subject} {message.text}"


# Numbers and times.


@pytest.mark.parametrize(
    ("slug", "variable", "english", "portuguese"),
    [
        ("contest_reminder", "hours_until_start", "hour", "hora"),
        ("contest_ending", "minutes_left", "minute", "minuto"),
        ("mfa_code", "expires_in", "minute", "minuto"),
    ],
)
@pytest.mark.parametrize("form", [int, str, float])
def test_one_of_something_is_not_several(
    slug: str, variable: str, english: str, portuguese: str, form: type
) -> None:
    for (locale, word), channel in product((("en", english), ("pt", portuguese)), Channel):
        one = said(slug, channel, locale=locale, **{variable: form(1)})
        two = said(slug, channel, locale=locale, **{variable: form(2)})
        assert re.search(rf"\b1(\.0)? {word}\b", f"{one.subject} {one.text}")
        assert re.search(rf"\b2(\.0)? {word}s\b", f"{two.subject} {two.text}")
        assert f"1 {word}s" not in f"{one.subject}{one.text}{one.html}"


@pytest.mark.parametrize("channel", Channel)
def test_a_contest_in_one_hour_starts_in_1_hour(channel: Channel) -> None:
    message = said("contest_reminder", channel, hours_until_start=1)
    assert message.subject == "Codeforces Round #900 (Div. 2) starts in 1 hour"
    assert "1 hours" not in f"{message.text}{message.html}"


def test_a_time_is_on_the_persons_clock() -> None:
    for start in ("2026-07-01T14:35:00Z", "2026-07-01T16:35:00+02:00", "2026-07-01T14:35:00"):
        text = said("contest_reminder", Channel.IN_APP, start_time=start).text
        assert "at 14:35 (UTC) on 1 July 2026" in text
        text = said("contest_reminder", Channel.IN_APP, zone="Asia/Tokyo", start_time=start).text
        assert "at 23:35 (Asia/Tokyo) on 1 July 2026" in text


def test_maintenance_on_one_day_names_the_day_once() -> None:
    text = said("system_alert", Channel.IN_APP).text
    assert "on 25 December 2026 from 02:00 to 04:00 (UTC)" in text
    text = said("system_alert", Channel.IN_APP, maintenance_end="2026-12-26T04:00:00Z").text
    assert "from 25 December 2026, 02:00, to 26 December 2026, 04:00 (UTC)" in text


def test_a_greeting_is_only_for_somebody_with_a_name() -> None:
    nobody = Recipient()
    for slug in ("order_shipped", "kyc_approved", "kyc_rejected", "user_activation"):
        data = BY_SLUG[slug].example_data
        assert said(slug, Channel.EMAIL).text.startswith("Hello Ada,\n\n")
        text = render_text(name=slug, data=data, recipient=nobody)[1]
        assert text[:2] in ("Yo", "We")
