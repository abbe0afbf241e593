"""Time zones and languages, as users of other services reported them."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.content import Content, Recipient
from domain.states import Channel
from domain.time import parse_zone
from notifications.catalog.types import WhatsAppTemplate
from notifications.content import rendering
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
