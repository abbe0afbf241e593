"""Which approved wording a person gets on WhatsApp."""

import pytest

from notifications.catalog.types import WhatsAppTemplate
from notifications.content.rendering import choose_whatsapp_template

ENGLISH = WhatsAppTemplate(locale="en", name="shipped", language="en", parameters=("order",))
PORTUGUESE = WhatsAppTemplate(locale="pt", name="shipped", language="pt_PT", parameters=("order",))
BRAZILIAN = WhatsAppTemplate(locale="pt-BR", name="shipped", language="pt_BR", parameters=())
ALL = (ENGLISH, PORTUGUESE, BRAZILIAN)


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("en", "en"),
        ("en-GB", "en"),
        ("pt", "pt_PT"),
        ("pt-BR", "pt_BR"),
        ("PT_br", "pt_BR"),
        ("pt-MZ", "pt_PT"),
        ("de", "en"),
        (None, "en"),
    ],
)
def test_the_nearest_language_is_taken_and_the_first_for_all_others(
    locale: str | None, language: str
) -> None:
    chosen = choose_whatsapp_template(ALL, locale=locale, data={"order": 1})
    assert chosen is not None
    assert chosen.language == language


def test_what_stands_in_its_places_comes_from_the_data_in_one_line() -> None:
    chosen = choose_whatsapp_template(
        [ENGLISH], locale="en", data={"order": "No.\n12\t 345", "other": 1}
    )
    assert chosen is not None
    assert chosen.parameters == ("No. 12 345",)


def test_a_long_value_is_cut() -> None:
    chosen = choose_whatsapp_template([ENGLISH], locale="en", data={"order": "x" * 5_000})
    assert chosen is not None
    assert len(chosen.parameters[0]) == 1_024


@pytest.mark.parametrize("data", [{}, {"order": None}])
def test_without_a_variable_there_is_nothing_to_send(data: dict[str, None]) -> None:
    assert choose_whatsapp_template([ENGLISH], locale="en", data=data) is None


def test_a_type_without_approved_wordings_has_none() -> None:
    assert choose_whatsapp_template([], locale="en", data={}) is None
