"""Translated messages: what is read of ICU MessageFormat, and what is refused."""

import pytest

from domain import messages
from domain.messages import Argument, Choice, Message, MessageError, Number
from tests.support.tables import each_case

NAME, COUNT = Argument("name"), Number("count")


@each_case(
    "text, expected",
    [
        ("", ()),
        ("Hello", ("Hello",)),
        ("Hello {name}!", ("Hello ", NAME, "!")),
        ("{ name }{name}", (NAME, NAME)),
        # As ICU: an apostrophe is one, unless a brace follows it.
        ("I don't know", ("I don't know",)),
        ("l''{name}", ("l'", NAME)),
        ("''{name}''", ("'", NAME, "'")),
        ("a '{' b '}' c '{''}'", ("a { b } c {'}",)),
        ("# 5 and '#'", ("# 5 and '#'",)),
        (
            "{count, plural, =0 {none} one {# item} other {# items}}",
            (
                Choice(
                    "count",
                    True,
                    {"=0": ("none",), "one": (COUNT, " item"), "other": (COUNT, " items")},
                ),
            ),
        ),
        (
            "{count,plural,other{'#' is #}}",
            (Choice("count", True, {"other": ("# is ", COUNT)}),),
        ),
        (
            "{name, select, f {her} 1 {one} other {}}",
            (Choice("name", False, {"f": ("her",), "1": ("one",), "other": ()}),),
        ),
        (
            "{name, select, other {{count, plural, other {#}}}}",
            (Choice("name", False, {"other": (Choice("count", True, {"other": (COUNT,)}),)}),),
        ),
    ],
)
def test_message_is_read(text: str, expected: Message) -> None:
    assert messages.parse(text) == expected


@each_case(
    "text, reason",
    [
        ("{", "a name is expected"),
        ("{}", "a name is expected"),
        ("{0}", "a name is expected"),
        ("{{ name }}", "a name is expected"),
        ("a } b", "without its '{'"),
        ("l'{name}", "begins a quotation that doesn't end"),
        ("'{name}'", "is a text and no value"),
        ("d'{name} l'{other}", "is a text and no value"),
        ("{when, date, short}", "neither a plural nor a select"),
        ("{count, number}", "neither a plural nor a select"),
        ("{count, selectordinal, other {#th}}", "neither a plural nor a select"),
        ("{count, plural}", "neither a plural nor a select"),
        ("{count, plural, one {# item}}", "needs 'other'"),
        ("{count, plural, one {# item} {# items}}", "an option without its text"),
        ("{count, plural, one {a} one {b} other {c}}", "has 'one' twice"),
        ("{count, plural, offset:1 other {c}}", "an option without its text"),
        ("{count, plural, single {a} other {c}}", "'single' is no option of a plural"),
        ("{count, plural, =01 {a} other {c}}", "'=01' is no option of a plural"),
        ("{count, plural, other {c", "doesn't end"),
        ("{count, plural, other {c}", "an option without its text, or doesn't end"),
        (
            "{count, plural, other {{name, select, other {# items}}}}",
            "A '#' in a select inside of a plural",
        ),
        ("{a, select, other {" * 4 + "}}" * 4, "At most 3 choices"),
        ("{a, select, " + "".join(f"a{n} {{}}" for n in range(20)) + "other {}}", "more than 20"),
        ("x" * 4_001, "At most 4,000 characters"),
    ],
)
def test_other_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(MessageError, match=None) as refused:
        messages.parse(text)
    assert reason in str(refused.value)


def test_arguments_and_plurals_are_found_at_any_depth() -> None:
    message = messages.parse("{a}{b, select, other {{c, plural, other {# {d}}}}}")
    assert messages.arguments(message) == {"a", "b", "c", "d"}
    assert [choice.name for choice in messages.plurals(message)] == ["c"]


def test_nested_texts_have_keys() -> None:
    texts = {"order": {"title": "A", "items": {"few": "B"}}, "bye": "C"}
    assert dict(messages.flat(texts)) == {"order.title": "A", "order.items.few": "B", "bye": "C"}


def test_reading_takes_linear_time() -> None:
    """Each text at the limit is read in as many steps as it has characters."""
    for text in ("'" * 4_000, "'{" * 2_000, "{a}" * 1_333, "{a,select," * 400, "#" * 4_000):
        try:
            messages.parse(text)
        except MessageError:
            continue
