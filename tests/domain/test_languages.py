"""Language tags: usual form, direction, and the nearest of several."""

from collections.abc import Sequence

from domain.languages import find_nearest, is_right_to_left, normalize_language
from tests.support.tables import each_case


@each_case(
    "given, usual",
    [
        ("pt", "pt"),
        ("PT", "pt"),
        ("pt_br", "pt-BR"),
        ("PT-br", "pt-BR"),
        ("pt_Latn_BR", "pt-Latn-BR"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("es_419", "es-419"),
        ("iw", "he"),
        ("iw-IL", "he-IL"),
        ("in_ID", "id-ID"),
        ("ji", "yi"),
        ("no", "nb"),
        ("sh", "sr-Latn"),
        ("zh-yue-HK", "yue-HK"),
        ("cmn-Hans-CN", "zh-Hans-CN"),
        ("en-US-u-hc-h12", "en-US"),
        ("en-US-x-twain", "en-US"),
        ("de-DE-1996", "de-DE-1996"),
        ("en_US.UTF-8", "en-US"),
        ("por", "pt"),
        ("en-UK", "en-GB"),
        ("", ""),
        ("x-own", "x-own"),
        ("und", "und"),
        ("../pt", "../pt"),
        ("C", "C"),
    ],
)
def test_tag_gets_its_usual_form(given: str, usual: str) -> None:
    assert normalize_language(given) == usual


@each_case(
    "wanted, available, found",
    [
        ("pt-BR", ["pt", "pt-BR"], ["pt-BR", "pt"]),
        ("pt", ["pt-BR"], ["pt-BR"]),
        ("pt", ["pt-PT", "pt-BR"], ["pt-BR", "pt-PT"]),
        ("en-GB", ["pt-BR", "en-US"], ["en-US"]),
        ("es-MX", ["es", "es-AR", "es-ES", "es-419"], ["es-419", "es", "es-AR", "es-ES"]),
        ("zh-TW", ["zh-CN", "zh", "zh-Hant"], ["zh-Hant", "zh"]),
        ("zh-TW", ["zh-CN", "zh-Hans"], []),
        ("zh-Hant-TW", ["zh-TW"], ["zh-TW"]),
        ("zh", ["zh-TW", "zh-CN"], ["zh-CN"]),
        ("sr-Latn-RS", ["sr", "sr-Cyrl-RS"], ["sr"]),
        ("iw-IL", ["he"], ["he"]),
        ("he", ["iw"], ["iw"]),
        ("in", ["id"], ["id"]),
        ("no", ["nb"], ["nb"]),
        ("nb-NO", ["no"], ["no"]),
        ("nn-NO", ["nb"], ["nb"]),
        ("de-CH-1901", ["de", "de-CH"], ["de-CH", "de"]),
        ("fr", ["en", "de"], []),
        *((locale, ["pt"], []) for locale in (None, "", "../pt", "pt\n.", "default")),
    ],
)
def test_nearest_comes_first(
    wanted: str | None, available: Sequence[str], found: list[str]
) -> None:
    assert find_nearest(wanted, available) == found


def test_direction_is_that_of_the_script() -> None:
    right = ["ar", "ar-EG", "he", "iw", "fa-IR", "ur", "ckb", "ug", "ps", "yi", "pa-PK", "dv"]
    left = ["en", "pt-BR", "pa", "pa-IN", "az", "uz", "ar-Latn", "tr", "zh", "", "x-own"]
    assert all(is_right_to_left(tag) for tag in right)
    assert not any(is_right_to_left(tag) for tag in left)
