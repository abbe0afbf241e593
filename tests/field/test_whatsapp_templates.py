"""Values in WhatsApp's approved templates, checked before the send.

Documents: Meta's references of template components (1,024 characters of a body) and authentication
templates (15 of a code), and of error 131008. Reports:
https://github.com/shridarpatil/frappe_whatsapp/issues/169 (an empty value),
https://github.com/netflie/whatsapp-cloud-api/issues/201 (line breaks).
"""

from typing import Any

from notifications.catalog.types import WhatsAppTemplate
from notifications.content import rendering
from notifications.content.text import ELLIPSIS
from notifications.content.whatsapp import MAX_BODY_LENGTH, PLACEHOLDER
from providers.contract import WhatsAppTemplateMessage
from tests.support.tables import each_case

BODY = "Note: {{1}}. See {{2}} for more."
FIXED = len("Note: . See  for more.")
LINK = "https://shop.example.com/orders/1?token=" + "a" * 60


def template(**fields: Any) -> WhatsAppTemplate:
    default: dict[str, Any] = {
        "locale": "en",
        "name": "note",
        "language": "en",
        "parameters": ("note", "link"),
        "body": BODY,
    }
    return WhatsAppTemplate(**(default | fields))


def chosen(approved: WhatsAppTemplate, **data: Any) -> WhatsAppTemplateMessage | None:
    found = rendering.choose_whatsapp_template([approved], locale="en", data=data)
    problem = rendering.find_template_problem([approved], locale="en", data=data)
    assert (found is None) is (problem is not None)
    return found


def problem_of(approved: WhatsAppTemplate, **data: Any) -> str | None:
    return rendering.find_template_problem([approved], locale="en", data=data)


def body_length(approved: WhatsAppTemplate, found: WhatsAppTemplateMessage) -> int:
    """Return the length of the body as Meta fills it."""
    return len(
        PLACEHOLDER.sub(lambda place: found.parameters[int(place[1]) - 1], approved.body or "")
    )


@each_case(
    "blank",
    [
        None,
        "",
        " ",
        "   ",
        "\n",
        "\t\r\n",
        "\u200b",
        "\u200b\u200b ",
        "\ufeff",
        "\u2060",
        "\u200d",
        "\u00a0",
        "\u3000",
        "\u202e",
        "\u2028",
        "\x00",
        "\u2800",
        "\u3164",
        "\u00ad",
        "\ufe0f",
        "\u034f",
        "\u180b\u200d",
        [],
        ["", "\u200b"],
    ],
)
@each_case("name", ["note", "link"])
def test_value_without_a_visible_character_is_missing(blank: Any, name: str) -> None:
    data = {"note": "Paid", "link": LINK} | {name: blank}
    assert problem_of(template(), **data) == f"No value for {name}."
    assert chosen(template(), **data) is None


def test_all_missing_values_are_named() -> None:
    assert problem_of(template()) == "No value for note, link."


@each_case(
    "value, text",
    [
        (0, "0"),
        (False, "false"),
        (True, "true"),
        (1.5, "1.5"),
        ("0", "0"),
        ("-", "-"),
        ([1, "a", None], "1a"),
        ("No.\n12\t 345", "No. 12 345"),
        (" a\u200bb ", "ab"),
        (["a ", "b"], "a b"),
        ([["a"], [True]], "atrue"),
        (1e16, "1.0e+16"),
        ({"a": None}, '{"a"=>nil}'),
        ([{"a": 1.0}], '{"a"=>1.0}'),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
        ("مرحبا", "مرحبا"),
        ("a" + " " * 9 + "b", "a b"),
    ],
)
def test_value_is_one_line_as_a_text_has_it(value: Any, text: str) -> None:
    found = chosen(template(), note=value, link="x")
    assert found is not None
    assert found.parameters == (text, "x")


WORDS = "Your parcel waits at the shop. " * 60


@each_case("length", [900, 980, 1_000, 1_024, 1_100, 1_800])
@each_case("link", [LINK, "ABC-123", "See the shop", "www.example.com/" + "a" * 80])
def test_long_text_is_cut_and_the_rest_is_whole(length: int, link: str) -> None:
    text = WORDS[:length].strip()
    found = chosen(template(), note=text, link=link)
    assert found is not None
    note, whole = found.parameters
    assert whole == link
    assert body_length(template(), found) <= MAX_BODY_LENGTH
    if len(text) + len(link) + FIXED <= MAX_BODY_LENGTH:
        assert note == text
    else:
        assert note.endswith(ELLIPSIS)
        assert text.startswith(note.removesuffix(ELLIPSIS))
        assert body_length(template(), found) > MAX_BODY_LENGTH - 20, "no more than is necessary"


@each_case(
    "whole",
    [
        "https://shop.example.com/?token=" + "a" * 1_100,
        "Click https://shop.example.com/?token=" + "a" * 1_100,
        "shop://orders/" + "a" * 1_100,
        "a" * 1_100,
    ],
)
@each_case("note", ["Paid", WORDS[:900]])
def test_link_or_code_is_never_cut(whole: str, note: str) -> None:
    problem = problem_of(template(), note=note, link=whole)
    assert problem == "With these values the body has more than 1,024 characters."
    assert chosen(template(), note=note, link=whole) is None


def test_several_texts_are_cut_the_longest_first() -> None:
    found = chosen(template(), note=WORDS[:800], link=WORDS[:500])
    assert found is not None
    assert found.parameters[1] == WORDS[:500].strip()
    found = chosen(template(), note=WORDS[:1_500], link=WORDS[:1_400])
    assert found is not None
    assert body_length(template(), found) <= MAX_BODY_LENGTH


def test_value_that_stands_twice_counts_twice() -> None:
    repeated = template(parameters=("note",), body="{{1}} and {{1}} again")
    found = chosen(repeated, note=WORDS[:700])
    assert found is not None
    assert body_length(repeated, found) <= MAX_BODY_LENGTH
    assert len(found.parameters[0]) > 480


def test_unknown_wording_leaves_all_to_the_values() -> None:
    found = chosen(template(body=None), note=WORDS[:1_500], link="x")
    assert found is not None
    assert sum(map(len, found.parameters)) <= MAX_BODY_LENGTH


CODE = template(parameters=("code",), body=None, button="code")


@each_case("code", ["1", "123456", 123456, "ABCDE-12345-FGH"])
def test_code_of_fifteen_characters_is_sent(code: Any) -> None:
    found = chosen(CODE, code=code)
    assert found is not None
    assert found.button == str(code)


@each_case("code", ["1234567890123456", "ABCDE-12345-FGHIJ-1"])
def test_longer_code_is_refused_before_the_send(code: str) -> None:
    assert problem_of(CODE, code=code) == "code has more than 15 characters."
    assert chosen(CODE, code=code) is None


def test_code_without_a_value_is_missing() -> None:
    assert problem_of(CODE, code=" ") == "No value for code."
