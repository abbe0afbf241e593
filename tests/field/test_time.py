"""Time zones and languages, as users of other services reported them."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.content import Content, Recipient
from domain.states import Channel
from domain.time import parse_zone
from notifications.catalog.types import WhatsAppTemplate
from notifications.content import rendering
from notifications.content.reminders import event_variables
from tests.support.factories.notifications import write_template
from tests.support.source import ROOT

NORTHERN_WINTER = datetime(2026, 12, 15, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        # IANA 2026b: British Columbia stays on summer time.
        ("America/Vancouver", -7),
        # IANA 2026c and later: Alberta and the Northwest Territories, too.
        *(("America/Edmonton", -6), ("America/Yellowknife", -6), ("America/Inuvik", -6)),
        *(("America/Whitehorse", -7), ("America/Mexico_City", -6), ("Asia/Almaty", 5)),
        *(("America/Asuncion", -3), ("Europe/Lisbon", 0), ("Pacific/Auckland", 13)),
    ],
)
def test_zone_has_the_rules_of_the_pinned_package(zone: str, hours: int) -> None:
    """https://github.com/regebro/tzlocal/issues/78: the system's rules were a year old."""
    assert NORTHERN_WINTER.astimezone(parse_zone(zone)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("module", ["notifyproject", "notifyproject.celery", "domain.digests"])
def test_every_process_reads_zones_from_the_package(module: str) -> None:
    program = f"import {module}, zoneinfo; print(zoneinfo.TZPATH)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout == "()\n"


LOCALES = [
    *(("pt_BR", "Corpo"), ("pt_PT", "Corpo"), ("PT", "Corpo"), ("Pt", "Corpo")),
    *(("pt-br", "Corpo"), ("pt-Latn-BR", "Corpo"), ("pt-BR-u-nu-latn", "Corpo")),
    *(("en", "Text"), ("en-GB", "Text"), ("en_AU", "Text"), ("eng", "Text")),
    *(("iw", "גוף"), ("iw_IL", "גוף"), ("in", "Isi"), ("no", "Brødtekst"), ("nn-NO", "Brødtekst")),
    *(("zh-TW", "內文"), ("zh_hk", "內文"), ("zh-CN", "Default"), ("fr", "Default")),
    *(("x-none", "Default"), ("", "Default")),
]
TEXTS = {
    "pt": "Corpo",
    "en-US": "Text",
    "he": "גוף",
    "id": "Isi",
    "nb": "Brødtekst",
    "zh-Hant": "內文",
}


@pytest.mark.parametrize(("locale", "text"), LOCALES)
def test_text_is_found_for_every_form_of_a_locale(templates: Path, locale: str, text: str) -> None:
    """Java and iOS write pt_BR, and tags have no case.

    https://github.com/resolve-accept-language/resolve-accept-language/issues/2,
    https://github.com/wikimedia/jquery.i18n/issues/120,
    https://github.com/opral/paraglide-js/issues/549
    """
    write_template(templates, "t", subject="S", body="Default")
    for language, body in TEXTS.items():
        write_template(templates, "t", language=language, subject="S", body=body)
    reader = Recipient(locale=locale)
    assert rendering.render_text(name="t", data={}, recipient=reader) == ("S", text)
    choice = rendering.choose_whatsapp_template(
        [
            WhatsAppTemplate(locale=language, name=body, language=language, parameters=())
            for language, body in {"und": "Default", **TEXTS}.items()
        ],
        locale=locale,
        data={},
    )
    assert choice is not None
    assert choice.name == text


def test_mail_names_its_language_as_the_standard_writes_it() -> None:
    message = rendering.render_message(
        channel=Channel.EMAIL,
        content=Content(subject="Olá", body="Olá"),
        data={},
        recipient=Recipient(locale="pt_br"),
    )
    assert message.html is not None
    assert '<html lang="pt-BR"' in message.html


START = datetime(2026, 11, 22, 20, tzinfo=UTC)
REMAINING = [
    # Quiet hours, a retry, or a digest held it for some hours.
    *((timedelta(hours=1, minutes=28), "1 hour"), (timedelta(hours=9), "9 hours")),
    *((timedelta(minutes=10), "10 minutes"), (timedelta(seconds=40), "1 minute")),
    *((timedelta(minutes=59, seconds=50), "1 hour"), (timedelta(days=1, hours=2), "26 hours")),
]


@pytest.mark.parametrize(("before", "shown"), REMAINING)
@pytest.mark.parametrize("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP, Channel.IN_APP])
def test_time_until_an_event_is_that_of_the_send(
    channel: Channel, before: timedelta, shown: str
) -> None:
    accepted = {"contest_name": "Cup", **event_variables(START, at=START - timedelta(hours=2))}
    reader = Recipient(timezone="Asia/Kolkata")
    subject, body = rendering.render_text(name="contest_reminder", data=accepted, recipient=reader)
    assert subject == "Cup starts in 2 hours"
    message = rendering.render_message(
        channel=channel,
        content=Content(
            subject=subject,
            body=body,
            template_id="contest_reminder",
            template_version=0,
            event_at=START,
        ),
        data=accepted,
        recipient=reader,
        now=START - before,
    )
    assert message.subject == f"Cup starts in {shown}"
    if channel is not Channel.PUSH:
        assert f"starts in {shown}," in message.text
    assert "2 hours" not in f"{message.text}{message.html}" or shown == "2 hours"


def test_own_subject_and_own_hours_of_a_reminder_are_kept() -> None:
    variables = event_variables(START, at=START - timedelta(hours=2))
    content = Content(
        subject="Do not forget",
        body="Cup starts in 2 hours",
        template_id="contest_reminder",
        template_version=0,
        event_at=START,
    )
    for event_at, word in ((START, "10 minutes"), (None, "2 hours")):
        message = rendering.render_message(
            channel=Channel.IN_APP,
            content=replace(content, event_at=event_at),
            data={"contest_name": "Cup", **variables},
            recipient=Recipient(),
            now=START - timedelta(minutes=10),
        )
        assert message.subject == "Do not forget"
        assert f"starts in {word}" in message.text
