"""Templates to texts."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.content import Content, Recipient
from domain.states import Channel
from notifications.catalog.default_types import DEFAULT_TYPES, DefaultType
from notifications.content.engine import TemplateError
from notifications.content.rendering import exists, render_message, render_text
from tests.support.factories.records import write_template as write

ADA = Recipient(email="ada@example.com", name="Ada")
TEMPLATED = [default for default in DEFAULT_TYPES if exists(default.slug)]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=5,
)


def body_of(folder: Path, body: str, *, recipient: Recipient = ADA, **data: Any) -> str:
    """Return what a body renders as."""
    write(folder, "t", body=body)
    return render_text(name="t", data=data, recipient=recipient)[1]


# The shipped templates.


def test_only_the_types_whose_callers_say_what_to_say_have_no_template() -> None:
    without = {default.slug for default in DEFAULT_TYPES} - {default.slug for default in TEMPLATED}
    assert without == {"transactional", "marketing", "alert"}


@pytest.mark.parametrize("recipient", [ADA, Recipient()], ids=["somebody", "nobody"])
@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_every_shipped_template_renders_with_its_example(
    default: DefaultType, recipient: Recipient
) -> None:
    subject, body = render_text(name=default.slug, data=default.example_data, recipient=recipient)
    for text in (subject, body):
        assert text
        assert text == text.strip()
        assert "{{" not in text
        assert "undefined" not in text
    assert "\n" not in subject
    assert len(subject) <= 255
    content = Content(subject=subject, body=body, template_id=default.slug)
    message = render_message(
        channel=Channel.EMAIL, content=content, data=default.example_data, recipient=recipient
    )
    assert message.html is not None
    assert message.html.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_every_value_of_an_example_is_shown(default: DefaultType) -> None:
    texts = "".join(render_text(name=default.slug, data=default.example_data, recipient=ADA))
    for name, value in default.example_data.items():
        shown = "14:35" if name == "start_time" else str(value)
        if not name.endswith(("_date", "_start", "_end")) or name == "hours_until_start":
            assert shown in texts


@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_a_shipped_template_names_each_variable_it_misses(default: DefaultType) -> None:
    optional = {"expires_in"}
    for name in default.example_data.keys() - optional:
        data = {k: v for k, v in default.example_data.items() if k != name}
        with pytest.raises(TemplateError) as problem:
            render_text(name=default.slug, data=data, recipient=ADA)
        assert problem.value.code == "missing_variable"
        assert problem.value.variable == name


@pytest.mark.parametrize("default", TEMPLATED, ids=lambda default: default.slug)
def test_a_secret_of_a_shipped_type_is_in_its_example(default: DefaultType) -> None:
    assert set(default.sensitive_variables) <= default.example_data.keys()


@given(value=json_values)
def test_whatever_a_variable_is_a_shipped_template_renders_or_says_why_not(value: Any) -> None:
    for name, variable in (("contest_reminder", "start_time"), ("payment_confirmed", "amount")):
        default = next(d for d in DEFAULT_TYPES if d.slug == name)
        with contextlib.suppress(TemplateError):
            data = {**default.example_data, variable: value}
            render_text(name=name, data=data, recipient=ADA)


def test_a_date_beyond_all_calendars_is_a_problem_and_not_a_failure() -> None:
    example = next(d for d in DEFAULT_TYPES if d.slug == "contest_reminder").example_data
    for moment in ("9999999999999999999", "9" * 400):
        with contextlib.suppress(TemplateError):
            render_text(
                name="contest_reminder", data={**example, "start_time": moment}, recipient=ADA
            )


# Names.


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "nope", "_layout", "MFA_CODE", "mfa_code/", "mfa_code/../mfa_code"),
        *("../notifications/mfa_code", "/etc", "mfa_code\x00", "mfa code", "mfa_code\n", "-x"),
        *("a" * 65, "mfa_cod\u0435"),
    ],
)
def test_a_template_is_a_plain_name(name: str) -> None:
    assert not exists(name)


def test_a_template_that_is_not_there_cannot_be_rendered() -> None:
    with pytest.raises(TemplateError) as problem:
        render_text(name="nope", data={}, recipient=ADA)
    assert problem.value.code == "unknown_template"


def test_a_template_without_a_subject_is_none(templates: Path) -> None:
    write(templates, "t")
    (templates / "t" / "subject.txt").unlink()
    with pytest.raises(TemplateError):
        render_text(name="t", data={}, recipient=ADA)


# Variables.


@pytest.mark.parametrize(
    ("template", "variable"),
    [
        ("{{ order }}", "order"),
        ("{{ order.number }}", "order"),
        ("{{ recipient.name }}", "recipient.name"),
        ("{{ recipient.email }}", "recipient.email"),
        ("{{ order | upcase }}", "order"),
        ("{{ order | date: '%Y' }}", "order"),
        ("{% for item in items %}{{ item }}{% endfor %}", "items"),
    ],
)
def test_a_variable_that_is_missing_is_named(templates: Path, template: str, variable: str) -> None:
    with pytest.raises(TemplateError) as problem:
        body_of(templates, template, recipient=Recipient())
    assert (problem.value.code, problem.value.variable) == ("missing_variable", variable)
    assert variable in str(problem.value)


@pytest.mark.parametrize(
    "template",
    [
        "{% if order %}{{ order }}{% endif %}",
        "{% if order == 'x' %}{{ order }}{% endif %}",
        "{% unless order %}{% endunless %}",
        "{{ order | default: '' }}",
    ],
)
def test_a_variable_that_is_asked_for_may_be_missing(templates: Path, template: str) -> None:
    assert body_of(templates, template) == ""


def test_no_filter_makes_a_text_of_a_missing_variable(templates: Path) -> None:
    filters = ("plus: 1", "times: 2", "round", "append: 'x'", "upcase", "escape", "size")
    for number, name in enumerate(filters):
        write(templates, f"t{number}", body=f"{{{{ amount | {name} }}}}")
        with pytest.raises(TemplateError):
            render_text(name=f"t{number}", data={}, recipient=ADA)


def test_no_filter_makes_a_number_of_a_missing_argument(templates: Path) -> None:
    for number, name in enumerate(("plus: tax", "append: tax", "date: tax", "slice: 0, tax")):
        write(templates, f"t{number}", body=f"{{{{ amount | {name} }}}}")
        with pytest.raises(TemplateError) as problem:
            render_text(name=f"t{number}", data={"amount": "5"}, recipient=ADA)
        assert problem.value.variable == "tax"


def test_a_caller_cannot_pass_for_the_recipient(templates: Path) -> None:
    write(templates, "t", body="{{ recipient.name }}")
    data = {"recipient": {"name": "Eve"}}
    assert render_text(name="t", data=data, recipient=ADA)[1] == "Ada"


@pytest.mark.parametrize(
    "value",
    [
        "{{ secret }}",
        "{% raw %}",
        "{% include '_layout' %}",
        "{{ recipient.email }}",
        "%recipient%",
        "${secret}",
        "\\",
    ],
)
def test_what_stands_in_the_data_is_never_rendered(templates: Path, value: str) -> None:
    assert body_of(templates, "{{ a }}", a=value, secret="s3cret") == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        ("<b>", "<b>"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
        ("$password", "$password"),
    ],
)
def test_a_value_is_shown_as_it_is(templates: Path, value: Any, text: str) -> None:
    assert body_of(templates, "{{ a }}", a=value) == text


# Limits.


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in (1..100000) %}x{% endfor %}",
        "{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}",
        "{% for i in (1..900) %}{{ a }}{% endfor %}",
        "{% assign x = a %}{% for i in (1..500) %}{% assign x = x | append: a %}{% endfor %}",
    ],
)
def test_a_template_cannot_hold_up_a_worker(templates: Path, template: str) -> None:
    with pytest.raises(TemplateError) as problem:
        body_of(templates, template, a="x" * 1000)
    assert problem.value.code == "template_failed"


def test_a_list_in_the_data_cannot_hold_up_a_worker(templates: Path) -> None:
    with pytest.raises(TemplateError):
        body_of(templates, "{% for i in a %}{{ i }}{% endfor %}", a=list(range(1001)))


# Languages.


@pytest.mark.parametrize(
    ("locale", "body"),
    [
        (None, "Hello"),
        ("", "Hello"),
        ("en", "Hello"),
        ("en-GB", "Hello"),
        ("pt", "Ol\u00e1"),
        ("pt-PT", "Ol\u00e1"),
        ("pt-BR", "Oi"),
        ("pt-BR-1996", "Oi"),
        ("PT", "Hello"),
        ("xx", "Hello"),
        ("../pt", "Hello"),
        ("pt/../pt", "Hello"),
        ("pt\x00", "Hello"),
        ("p", "Hello"),
        ("portuguese", "Hello"),
    ],
)
def test_a_language_falls_back_to_the_nearest(
    templates: Path, locale: str | None, body: str
) -> None:
    write(templates, "t", body="Hello")
    for language, text in (("pt", "Ol\u00e1"), ("pt-BR", "Oi")):
        write(templates, "t", language=language, body=text)
    assert render_text(name="t", data={}, recipient=Recipient(locale=locale)) == ("S", body)
