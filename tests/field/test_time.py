"""Time zones and languages, as users of other services reported them."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.languages import find_nearest, normalize_language
from domain.time import InvalidTimeError, parse_zone
from notifications.catalog.types import WhatsAppTemplate
from notifications.content import rendering
from notifications.content.reminders import data_at, event_variables
from notifications.validation import parse_language
from tests.support.factories.notifications import write_template
from tests.support.source import ROOT
from tests.support.tables import each_case

NORTHERN_WINTER = datetime(2026, 12, 15, 9, tzinfo=UTC)


@each_case(
    "zone, hours",
    [
        # IANA 2026b: British Columbia stays on summer time.
        ("America/Vancouver", -7),
        # IANA 2026c and later: Alberta and the Northwest Territories, too.
        ("America/Edmonton", -6),
        ("America/Yellowknife", -6),
        ("America/Inuvik", -6),
        ("America/Whitehorse", -7),
        ("America/Mexico_City", -6),
        ("Asia/Almaty", 5),
        ("America/Asuncion", -3),
        ("Europe/Lisbon", 0),
        ("Pacific/Auckland", 13),
    ],
)
def test_zone_has_the_rules_of_the_pinned_package(zone: str, hours: int) -> None:
    """https://github.com/regebro/tzlocal/issues/78: the system's rules were a year old."""
    assert NORTHERN_WINTER.astimezone(parse_zone(zone)).utcoffset() == timedelta(hours=hours)


def test_every_process_reads_zones_from_the_package() -> None:
    program = "import domain.digests, zoneinfo; print(zoneinfo.TZPATH)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout == "()\n"


LOCALES = [
    ("pt_BR", "Corpo"),
    ("pt_PT", "Corpo"),
    ("PT", "Corpo"),
    ("Pt", "Corpo"),
    ("pt-br", "Corpo"),
    ("pt-Latn-BR", "Corpo"),
    ("pt-BR-u-nu-latn", "Corpo"),
    ("en", "Text"),
    ("en-GB", "Text"),
    ("en_AU", "Text"),
    ("eng", "Text"),
    ("iw", "גוף"),
    ("iw_IL", "גוף"),
    ("in", "Isi"),
    ("no", "Brødtekst"),
    ("nn-NO", "Brødtekst"),
    ("zh-TW", "內文"),
    ("zh_hk", "內文"),
    ("zh-CN", "Default"),
    ("fr", "Default"),
    ("x-none", "Default"),
    ("", "Default"),
]
TEXTS = {
    "pt": "Corpo",
    "en-US": "Text",
    "he": "גוף",
    "id": "Isi",
    "nb": "Brødtekst",
    "zh-Hant": "內文",
}


@pytest.fixture
def written(templates: Path) -> None:
    write_template(templates, "t", subject="S", body="Default")
    for language, body in TEXTS.items():
        write_template(templates, "t", language=language, subject="S", body=body)


@pytest.mark.usefixtures("written")
@each_case("locale, text", LOCALES)
def test_text_is_found_for_every_form_of_a_locale(locale: str, text: str) -> None:
    """Java and iOS write pt_BR, and tags have no case.

    https://github.com/resolve-accept-language/resolve-accept-language/issues/2,
    https://github.com/wikimedia/jquery.i18n/issues/120,
    https://github.com/opral/paraglide-js/issues/549
    """
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
    (timedelta(hours=1, minutes=28), "1 hour"),
    (timedelta(hours=9), "9 hours"),
    (timedelta(minutes=10), "10 minutes"),
    (timedelta(seconds=40), "1 minute"),
    (timedelta(minutes=59, seconds=50), "1 hour"),
    (timedelta(days=1, hours=2), "26 hours"),
]


@each_case("before, shown", REMAINING)
@each_case("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP, Channel.IN_APP])
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


@each_case("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP, Channel.IN_APP])
@each_case("event_at", [START, None])
@each_case("own", [None, "Do not forget"])
def test_time_is_that_of_the_zone_where_the_recipient_is_now(
    channel: Channel, event_at: datetime | None, own: str | None
) -> None:
    before, now = Recipient(timezone="Asia/Kolkata"), Recipient(timezone="America/Sao_Paulo")
    data = {"contest_name": "Cup", **event_variables(START, at=START - timedelta(hours=2))}
    subject, body = rendering.render_text(name="contest_reminder", data=data, recipient=before)
    assert "01:30 (Asia/Kolkata) on 23 November" in body
    message = rendering.render_message(
        channel=channel,
        content=Content(
            subject=own or subject,
            body=body,
            template_id="contest_reminder",
            template_version=0,
            event_at=event_at,
        ),
        data=data,
        recipient=now,
        accepted_recipient=before,
        now=START - timedelta(hours=2),
    )
    assert message.subject == (own or "Cup starts in 2 hours")
    assert "17:00 (America/Sao_Paulo)" in message.text
    assert "Kolkata" not in f"{message.text}{message.html}"


def test_whatsapp_template_says_the_hours_of_the_send() -> None:
    accepted = event_variables(START, at=START - timedelta(hours=11))
    cup = WhatsAppTemplate(
        locale="en", name="cup", language="en", parameters=("hours_until_start", "place")
    )
    filled = rendering.choose_whatsapp_template(
        [cup],
        locale="en",
        data=data_at(
            Content(subject="", body="", event_at=START),
            {**accepted, "place": "Porto"},
            now=START - timedelta(hours=2),
        ),
    )
    assert filled is not None
    assert filled.parameters == ("2", "Porto")


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


@each_case(
    "given, usual",
    [
        # Java and .NET write three letters; https://github.com/mozilla/i18n-abide/issues/17
        ("en-USA", "en-US"),
        ("pt_BRA", "pt-BR"),
        ("es-MEX", "es-MX"),
        ("nb-NOR", "nb-NO"),
        ("chi-TWN", "zh-TW"),
        ("zh-Hans-CHN", "zh-Hans-CN"),
        ("en-ABC", "en"),
        # Android resources and Java's own forms
        ("b+sr+Latn", "sr-Latn"),
        ("b+es+419", "es-419"),
        ("b+zh+Hant+TW", "zh-Hant-TW"),
        ("sr_BA_#Latn", "sr-Latn-BA"),
        ("zh__#Hans", "zh-Hans"),
        ("no_NO_NY", "nn-NO"),
        ("th_TH_TH_#u-nu-thai", "th-TH"),
        ("ji_UA", "yi-UA"),
        ("in_ID", "id-ID"),
        # Locales of POSIX
        ("sr_RS@latin", "sr-Latn-RS"),
        ("sr_RS.UTF-8@latin", "sr-Latn-RS"),
        ("uz_UZ@cyrillic", "uz-Cyrl-UZ"),
        ("de_DE.UTF-8@euro", "de-DE"),
        ("de_DE_EURO", "de-DE"),
        ("ca_ES@valencia", "ca-ES-valencia"),
        ("en_US_POSIX", "en-US"),
        ("POSIX", "POSIX"),
        # Windows
        ("zh-CHS", "zh-Hans"),
        ("zh-CHT", "zh-Hant"),
        ("az-AZ-Cyrl", "az-Cyrl-AZ"),
        ("sr-SP-Latn", "sr-Latn-RS"),
        ("es_ES_TRADITIONAL", "es-ES"),
        # RFC 5646 and CLDR: extended subtags, grandfathered tags, regions that are no more
        ("zh-yue-HK", "yue-HK"),
        ("ar-arz", "arz"),
        ("no-nyn", "nn"),
        ("no-bok", "nb"),
        ("zh-min-nan", "nan"),
        ("i-klingon", "tlh"),
        ("cnr", "sr-ME"),
        ("sr-YU", "sr-RS"),
        ("hy-SU", "hy-AM"),
        ("prs", "fa-AF"),
        ("und-US", "und-US"),
        ("i-ami", "ami"),
        ("i-default", "i-default"),
        ("C.UTF-8", "C.UTF-8"),
        ("mo", "ro"),
        # ISO 639-3 knows more than CLDR
        ("tlh", "tlh"),
        ("vgt-BE", "vgt-BE"),
        # Other letters and separators, and what a language was called
        ("PT_br", "pt-BR"),
        ("pt_BR.UTF-8", "pt-BR"),
        ("pt-BR-u-nu-latn", "pt-BR"),
        ("PT", "pt"),
        ("pt-Latn-BR", "pt-Latn-BR"),
        ("iw", "he"),
        ("in", "id"),
        ("no", "nb"),
        ("zh_hans_CN", "zh-Hans-CN"),
        ("es_419", "es-419"),
        ("sr-Latn", "sr-Latn"),
    ],
)
def test_tag_of_another_system_keeps_language_script_and_region(given: str, usual: str) -> None:
    assert normalize_language(given) == usual
    assert parse_language(given) == usual


@each_case(
    "locale, texts, found",
    [
        # CLDR's languageMatching.json: languages next to each other, in the same script
        ("nb", ["nn", "en"], "nn"),
        ("nn-NO", ["nb"], "nb"),
        ("no", ["da"], "da"),
        ("da", ["nb"], "nb"),
        ("gsw-CH", ["de", "de-CH"], "de-CH"),
        ("lb-LU", ["de"], "de"),
        ("bs", ["hr"], "hr"),
        ("hr-HR", ["bs"], "bs"),
        ("id", ["ms"], "ms"),
        ("arz", ["ar"], "ar"),
        ("nb-NO", ["nn", "nb-SJ"], "nb-SJ"),
        ("yue-CN", ["zh-TW", "zh-CN"], "zh-CN"),
        ("de", ["gsw"], None),
        ("uk", ["ru"], None),
        ("ca", ["es"], None),
        ("ms", ["id"], None),
        ("cnr", ["sr", "sr-Latn"], "sr-Latn"),
        ("sr_RS@latin", ["sr", "sr-Latn"], "sr-Latn"),
        ("en-USA", ["en-GB", "en-US"], "en-US"),
        ("zh-CHT", ["zh-CN", "zh-TW"], "zh-TW"),
        ("C", ["en"], None),
        ("POSIX", ["en"], None),
        ("und", ["en"], None),
    ],
)
def test_reader_gets_a_text_of_the_nearest_language(
    locale: str, texts: list[str], found: str | None
) -> None:
    """https://github.com/enonic/xp/issues/9167, https://github.com/florrain/locale/issues/41"""
    assert next(iter(find_nearest(locale, texts)), None) == found


ZONES = {
    # https://github.com/chronotope/chrono/issues/972
    "utc": "UTC",
    "europe/lisbon": "Europe/Lisbon",
    "AMERICA/NEW_YORK": "America/New_York",
    "America/New York": "America/New_York",
    "Z": "UTC",
    "Coordinated Universal Time": "UTC",
    "etc/zulu": "Etc/Zulu",
    " Asia/Tokyo": "Asia/Tokyo",
    "asia/calcutta": "Asia/Calcutta",
    "gb": "GB",
    "Etc/GMT+2": "Etc/GMT+2",
    # An Android without a place. https://github.com/analogdotnow/Analog/issues/315
    "GMT+02:00": "Etc/GMT-2",
    "UTC-5": "Etc/GMT+5",
    "+0200": "Etc/GMT-2",
    "GMT+00:00": "UTC",
    # https://github.com/JM-Lemmi/ical-relay/issues/72, https://github.com/dotnet/runtime/pull/130340
    "GMT Standard Time": "Europe/London",
    "Israel Standard Time": "Asia/Jerusalem",
    "Romance Standard Time": "Europe/Paris",
    "Tokyo Standard Time": "Asia/Tokyo",
    "W. Europe Standard Time": "Europe/Berlin",
    "pacific standard time": "America/Los_Angeles",
}


@each_case("given, name", ZONES.items())
def test_zone_is_found_by_any_name_that_means_one(given: str, name: str) -> None:
    assert parse_zone(given).key == name


@each_case(
    "given, reason",
    [
        ("GMT+05:30", "offset"),
        ("+15:00", "offset"),
        ("UTC+2:30", "offset"),
        ("PST", "several meanings"),
        ("IST", "several meanings"),
        ("BST", "several meanings"),
        ("Etc/Unknown", "names no zone"),
        ("localtime", "names no zone"),
        ("Mars/Olympus", "IANA"),
        ("../etc/passwd", "IANA"),
        ("", "IANA"),
        ("Europe", "IANA"),
    ],
)
def test_name_of_no_zone_says_what_is_expected(given: str, reason: str) -> None:
    with pytest.raises(InvalidTimeError, match=reason) as refusal:
        parse_zone(given)
    assert refusal.value.code == "unknown_timezone"
