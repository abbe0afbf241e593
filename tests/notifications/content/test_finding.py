"""Which text stands for a part, from files: versions are in the database."""

from pathlib import Path

import pytest

from notifications.content import templates as content_templates
from notifications.content.engine import Template, TemplateError
from notifications.content.templates import (
    DEFAULT_LANGUAGE,
    Part,
    effective_texts,
    find_template,
    get_layout,
    language_chain,
    language_of,
    layout_words,
)
from tests.support.factories.records import write_template


@pytest.mark.parametrize(
    ("locale", "chain"),
    [
        (None, ["default"]),
        ("", ["default"]),
        ("pt", ["pt", "default"]),
        ("pt-BR", ["pt-BR", "pt", "default"]),
        ("zh-Hant-TW", ["zh-Hant-TW", "zh-Hant", "zh", "default"]),
        ("../pt", ["default"]),
        ("default", ["default"]),
        ("pt\n", ["default"]),
    ],
)
def test_a_locale_is_looked_for_from_the_nearest_to_the_templates_own(
    locale: str | None, chain: list[str]
) -> None:
    assert list(language_chain(locale)) == chain


def test_each_part_is_looked_for_by_itself(templates: Path) -> None:
    write_template(templates, "t", subject="S", body="B")
    write_template(templates, "t", language="pt", subject="Assunto", body="Corpo")
    (templates / "t" / "pt" / "body.txt").unlink()
    subject = find_template("t", 0, Part.SUBJECT, "pt-BR")
    body = find_template("t", 0, Part.BODY, "pt-BR")
    assert subject is not None
    assert body is not None
    assert (subject.render({}), body.render({})) == ("Assunto", "B")
    assert language_of("t", 0, "pt-BR") is None


def test_a_template_says_which_language_it_was_found_in(templates: Path) -> None:
    write_template(templates, "t")
    write_template(templates, "t", language="pt")
    assert language_of("t", 0, "pt-BR") == "pt"
    assert language_of("t", 0, "fr") is None
    assert language_of("nope", 0, "pt") is None


def test_what_is_in_effect_is_what_somebody_would_get(templates: Path) -> None:
    write_template(templates, "t", push="P", push_title="T", email_html="<p>H</p>")
    write_template(templates, "t", language="pt", body="Corpo")
    (templates / "t" / "pt" / "subject.txt").unlink()
    assert effective_texts("t", 0) == {
        DEFAULT_LANGUAGE: {
            "subject": "S",
            "body": "B",
            "push": "P",
            "push_title": "T",
            "email_html": "<p>H</p>",
        },
        "pt": {"body": "Corpo"},
    }
    assert effective_texts("nope", 0) == {}


def test_files_are_read_once(templates: Path) -> None:
    write_template(templates, "t", body="Before")
    assert find_template("t", 0, Part.BODY, None) is find_template("t", 0, Part.BODY, None)
    (templates / "t" / "body.txt").write_text("After")
    before = find_template("t", 0, Part.BODY, None)
    assert before is not None
    assert before.render({}) == "Before"
    content_templates.clear()
    after = find_template("t", 0, Part.BODY, None)
    assert after is not None
    assert after.render({}) == "After"


def test_a_file_that_is_no_template_is_a_problem_with_its_line(templates: Path) -> None:
    write_template(templates, "t", body="a\n{% nope %}")
    with pytest.raises(TemplateError) as problem:
        find_template("t", 0, Part.BODY, None)
    assert (problem.value.code, problem.value.line) == ("template_failed", 2)


def test_a_missing_variable_has_its_line() -> None:
    with pytest.raises(TemplateError) as problem:
        Template("a\n\n{{ b }}").render({})
    assert (problem.value.variable, problem.value.line) == ("b", 3)


def test_without_a_layout_there_is_no_mail(templates: Path) -> None:
    (templates / "_layout" / "email.html").unlink()
    with pytest.raises(TemplateError, match="layout"):
        get_layout("pt")


def test_a_language_may_have_a_layout_of_its_own(templates: Path) -> None:
    (templates / "_layout" / "pt" / "email.html").write_text("<p>Pt</p>")
    assert "Pt" in get_layout("pt-BR").render({})
    assert layout_words("pt-BR")["open"] == "Abrir"
    assert layout_words("fr")["open"] == "Open"
    assert layout_words("pt").keys() == layout_words(None).keys()
