"""Rendering: templates to text, for each channel, and approved WhatsApp templates."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.content import Attachment, Content, Recipient
from domain.states import Channel
from notifications.catalog.default_types import DEFAULT_TYPES, DefaultType
from notifications.catalog.types import MASK, WhatsAppTemplate
from notifications.content.engine import TemplateError
from notifications.content.rendering import (
    PUSH_BODY_LENGTH,
    PUSH_TITLE_LENGTH,
    check_channels,
    choose_whatsapp_template,
    exists,
    render_message,
    render_text,
)
from providers.contract import Message
from tests.support.factories.notifications import MORE_THAN_TEXT
from tests.support.factories.notifications import write_template as write

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


SAID = Content(subject="Hello", body="First.\n\nSecond.", deep_link="https://example.com/1")

OTHERS = [channel for channel in Channel if channel is not Channel.EMAIL]


def message(channel: Channel, content: Content, recipient: Recipient = ADA, **data: Any) -> Message:
    return render_message(channel=channel, content=content, data=data, recipient=recipient)


def of(name: str, **fields: Any) -> Content:
    """Return content that was made by a template."""
    return Content(**({"subject": "S", "body": "B", "template_id": name} | fields))


def test_only_mail_is_made_of_html() -> None:
    assert message(Channel.EMAIL, SAID).html is not None
    assert {message(channel, SAID).html for channel in OTHERS} == {None}


@pytest.mark.parametrize("channel", Channel)
def test_what_is_not_text_goes_along_on_every_channel(channel: Channel) -> None:
    said = message(channel, MORE_THAN_TEXT)
    assert said.image_url == "https://cdn.example.com/i.png"
    assert said.deep_link == "app://orders/1"
    assert said.payload == {"orderId": "1"}


def test_files_and_a_way_back_and_a_way_out_go_with_mail_only() -> None:
    url = "https://example.com/a.pdf"
    files = (Attachment(url=url, filename="a.pdf", content_type="application/pdf"),)
    content = Content(subject="s", body="b", reply_to="help@example.com", attachments=files)
    for channel in Channel:
        said = render_message(
            channel=channel,
            content=content,
            data={},
            recipient=ADA,
            unsubscribe_url="https://example.com/u",
        )
        found = (said.reply_to, said.attachments, said.unsubscribe_url)
        whole = ("help@example.com", files, "https://example.com/u")
        assert found == (whole if channel is Channel.EMAIL else (None, (), None))


def test_a_channel_without_words_of_its_own_says_subject_and_body() -> None:
    assert message(Channel.IN_APP, SAID).text == "First.\n\nSecond."
    assert message(Channel.WHATSAPP, SAID).text == "First.\n\nSecond."
    push = message(Channel.PUSH, SAID)
    assert (push.subject, push.text) == ("Hello", "First.\nSecond.")


def test_a_template_may_have_words_for_a_channel(templates: Path) -> None:
    write(
        templates, "t", push="Short {{ a }}", push_title="Title {{ a }}", whatsapp="*Bold* {{ a }}"
    )
    push = message(Channel.PUSH, of("t"), a=1)
    assert (push.subject, push.text) == ("Title 1", "Short 1")
    assert message(Channel.WHATSAPP, of("t"), a=1).text == "*Bold* 1"
    in_app = message(Channel.IN_APP, of("t"), a=1)
    assert (in_app.subject, in_app.text) == ("S", "B")


def test_a_push_is_cut_to_what_a_phone_shows() -> None:
    push = message(Channel.PUSH, Content(subject="long " * 60, body="word " * 300))
    assert push.subject is not None
    assert len(push.subject) <= PUSH_TITLE_LENGTH
    assert len(push.text) <= PUSH_BODY_LENGTH
    assert push.subject.endswith("long\u2026")
    assert push.text.endswith("word\u2026")


def test_a_push_of_a_template_is_cut_too(templates: Path) -> None:
    write(templates, "t", push="{{ a }}", push_title="{{ a }}")
    push = message(Channel.PUSH, of("t"), a="word " * 300)
    assert push.subject is not None
    assert (len(push.subject), len(push.text)) <= (PUSH_TITLE_LENGTH, PUSH_BODY_LENGTH)


def test_a_push_without_a_subject_has_no_title() -> None:
    assert message(Channel.PUSH, Content(body="b")).subject is None


def test_the_callers_subject_wins_over_the_templates_title(templates: Path) -> None:
    write(templates, "t", push_title="Short")
    assert message(Channel.PUSH, of("t", subject="The caller's")).subject == "The caller's"
    assert message(Channel.PUSH, of("t", subject="S")).subject == "Short"


def test_a_secret_is_in_what_is_sent_on_every_channel() -> None:
    masked = of("mfa_code", subject=f"{MASK} is your login code", body=MASK, is_masked=True)
    for channel in Channel:
        said = message(channel, masked, code="493817")
        assert "493817" in f"{said.subject}{said.text}"
        assert MASK not in f"{said.subject}{said.text}{said.html}"


def test_words_of_a_channel_are_in_the_persons_language(templates: Path) -> None:
    write(templates, "t", push="Short", whatsapp="Hello")
    write(templates, "t", language="pt", push="Curto", whatsapp="Ol\u00e1")
    for locale, push, whatsapp in (("pt-BR", "Curto", "Ol\u00e1"), ("fr", "Short", "Hello")):
        person = Recipient(locale=locale)
        assert message(Channel.PUSH, of("t"), person).text == push
        assert message(Channel.WHATSAPP, of("t"), person).text == whatsapp


def test_words_of_a_channel_in_another_language_than_the_body_are_not_taken(
    templates: Path,
) -> None:
    """Better the body's own words, cut, than half a message in a language nobody asked for."""
    write(templates, "t", push="Short", email_html="<h2>English</h2>", whatsapp="Hello")
    write(templates, "t", language="pt", body="Corpo")
    person, content = Recipient(locale="pt"), of("t", body="Corpo")
    assert message(Channel.PUSH, content, person).text == "Corpo"
    assert message(Channel.WHATSAPP, content, person).text == "Corpo"
    assert "English" not in str(message(Channel.EMAIL, content, person).html)


def test_what_was_accepted_is_sent_when_the_template_has_changed_since(templates: Path) -> None:
    """A release may bring files that need a variable which nobody asked for before."""
    write(templates, "t", email_html="{{ new }}", push="{{ new }}", whatsapp="{{ new }}")
    for channel in Channel:
        said = message(channel, of("t", body="As accepted."))
        assert "As accepted." in said.text
    assert "As accepted." in str(message(Channel.EMAIL, of("t", body="As accepted.")).html)


def test_a_secret_that_cannot_be_filled_in_is_not_sent_as_a_mask() -> None:
    masked = of("mfa_code", subject=MASK, body=MASK, is_masked=True)
    for channel in Channel:
        with pytest.raises(TemplateError):
            message(channel, masked)


@pytest.mark.parametrize(
    ("channel", "part"),
    [
        (Channel.EMAIL, "email_html"),
        (Channel.PUSH, "push"),
        (Channel.PUSH, "push_title"),
        (Channel.WHATSAPP, "whatsapp"),
    ],
)
def test_a_variable_only_one_channel_needs_is_missed_before_anything_is_accepted(
    templates: Path, channel: Channel, part: str
) -> None:
    write(templates, "t", **{part: "{{ extra }}"})
    options: dict[str, Any] = {"name": "t", "version": 0, "recipient": ADA}
    with pytest.raises(TemplateError) as problem:
        check_channels([channel], data={}, **options)
    assert problem.value.variable == "extra"
    check_channels([channel], data={"extra": 1}, **options)
    check_channels([c for c in Channel if c is not channel], data={}, **options)


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
