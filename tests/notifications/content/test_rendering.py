"""Rendering: templates to text, for each channel, and approved WhatsApp templates."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.channels import Channel
from domain.content import Attachment, Content, Recipient
from notifications.catalog.shipped_types import ShippedType, shipped_types
from notifications.catalog.types import MASK, WhatsAppTemplate
from notifications.content.engine import TemplateError
from notifications.content.rendering import (
    PUSH_BODY_LENGTH,
    PUSH_TITLE_LENGTH,
    choose_whatsapp_template,
    exists,
    render_message,
    render_text,
)
from providers.contract import Message
from tests.support.factories.notifications import MORE_THAN_TEXT
from tests.support.factories.notifications import write_template as write
from tests.support.tables import each_case

ADA = Recipient(email="ada@example.com", name="Ada")
TEMPLATED = [default for default in shipped_types() if exists(default.slug)]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=5,
)


def body_of(folder: Path, body: str, *, recipient: Recipient = ADA, **data: Any) -> str:
    name = f"t{len(list(folder.iterdir()))}"
    write(folder, name, body=body)
    return render_text(name=name, data=data, recipient=recipient)[1]


def test_only_types_with_inline_content_have_no_template() -> None:
    without = {default.slug for default in shipped_types()} - {
        default.slug for default in TEMPLATED
    }
    assert without == {"transactional", "marketing", "alert"}


@each_case("default", TEMPLATED)
def test_example_values_are_shown(default: ShippedType) -> None:
    texts = "".join(
        render_text(name=default.slug, data=default.definition.example_data, recipient=ADA)
    )
    for name, value in default.definition.example_data.items():
        shown = "14:35" if name == "start_time" else str(value)
        is_formatted = name.endswith(("_date", "_start", "_end")) and name != "hours_until_start"
        if not is_formatted and not isinstance(value, dict):
            assert shown in texts


@each_case("default", TEMPLATED)
def test_shipped_templates_name_missing_variables(default: ShippedType) -> None:
    optional = {"expires_in", "minutes_until_start"}
    for name in default.definition.example_data.keys() - optional:
        data = {k: v for k, v in default.definition.example_data.items() if k != name}
        with pytest.raises(TemplateError) as problem:
            render_text(name=default.slug, data=data, recipient=ADA)
        assert problem.value.code == "missing_variable"
        assert problem.value.variable == name


@each_case("default", TEMPLATED)
def test_secrets_of_shipped_types_are_in_their_examples(default: ShippedType) -> None:
    assert set(default.definition.sensitive_variables) <= default.definition.example_data.keys()


@given(value=json_values)
@example(value="9" * 400)
@example(value="9999999999999999999")
def test_shipped_template_renders_or_raises_a_template_error(value: Any) -> None:
    for name, variable in (("contest_reminder", "start_time"), ("payment_confirmed", "amount")):
        default = next(d for d in shipped_types() if d.slug == name)
        with contextlib.suppress(TemplateError):
            data = {**default.definition.example_data, variable: value}
            render_text(name=name, data=data, recipient=ADA)


@each_case(
    "name",
    [
        "",
        ".",
        "..",
        "nope",
        "_layout",
        "MFA_CODE",
        "mfa_code/",
        "mfa_code/../mfa_code",
        "../notifications/mfa_code",
        "/etc",
        "mfa_code\x00",
        "mfa code",
        "mfa_code\n",
        "-x",
        "a" * 65,
        "mfa_cod\u0435",
    ],
)
def test_template_name_is_plain(name: str) -> None:
    assert not exists(name)


def test_unknown_template_cannot_be_rendered() -> None:
    with pytest.raises(TemplateError) as problem:
        render_text(name="nope", data={}, recipient=ADA)
    assert problem.value.code == "unknown_template"


def test_template_without_a_subject_cannot_be_rendered(templates: Path) -> None:
    write(templates, "t")
    (templates / "t" / "subject.txt").unlink()
    with pytest.raises(TemplateError):
        render_text(name="t", data={}, recipient=ADA)


@each_case(
    "template, variable",
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
def test_missing_variable_is_named(templates: Path, template: str, variable: str) -> None:
    with pytest.raises(TemplateError) as problem:
        body_of(templates, template, recipient=Recipient())
    assert (problem.value.code, problem.value.variable) == ("missing_variable", variable)
    assert variable in str(problem.value)


@each_case(
    "template",
    [
        "{% if order %}{{ order }}{% endif %}",
        "{% if order == 'x' %}{{ order }}{% endif %}",
        "{% unless order %}{% endunless %}",
        "{{ order | default: '' }}",
    ],
)
def test_variable_with_a_condition_or_default_is_optional(templates: Path, template: str) -> None:
    assert body_of(templates, template) == ""


def test_filters_do_not_hide_a_missing_variable(templates: Path) -> None:
    filters = ("plus: 1", "times: 2", "round", "append: 'x'", "upcase", "escape", "size")
    for number, name in enumerate(filters):
        write(templates, f"t{number}", body=f"{{{{ amount | {name} }}}}")
        with pytest.raises(TemplateError):
            render_text(name=f"t{number}", data={}, recipient=ADA)


def test_filters_do_not_hide_a_missing_argument(templates: Path) -> None:
    for number, name in enumerate(("plus: tax", "append: tax", "date: tax", "slice: 0, tax")):
        write(templates, f"t{number}", body=f"{{{{ amount | {name} }}}}")
        with pytest.raises(TemplateError) as problem:
            render_text(name=f"t{number}", data={"amount": "5"}, recipient=ADA)
        assert problem.value.variable == "tax"


def test_data_cannot_replace_the_recipient(templates: Path) -> None:
    write(templates, "t", body="{{ recipient.name }}")
    assert render_text(name="t", data={"recipient": {"name": "Eve"}}, recipient=ADA)[1] == "Ada"


@each_case(
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
def test_data_is_never_rendered(templates: Path, value: str) -> None:
    assert body_of(templates, "{{ a }}", a=value, secret="s3cret") == value


@each_case(
    "value, text",
    [
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        ("<b>", "<b>"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
        ("$password", "$password"),
    ],
)
def test_values_are_shown_unchanged(templates: Path, value: Any, text: str) -> None:
    assert body_of(templates, "{{ a }}", a=value) == text


@each_case(
    "template",
    [
        "{% for i in (1..100000) %}x{% endfor %}",
        "{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}",
        "{% for i in (1..900) %}{{ a }}{% endfor %}",
        "{% assign x = a %}{% for i in (1..500) %}{% assign x = x | append: a %}{% endfor %}",
    ],
)
def test_expensive_template_fails(templates: Path, template: str) -> None:
    with pytest.raises(TemplateError) as problem:
        body_of(templates, template, a="x" * 1000)
    assert problem.value.code == "template_failed"


def test_long_list_in_data_fails(templates: Path) -> None:
    with pytest.raises(TemplateError):
        body_of(templates, "{% for i in a %}{{ i }}{% endfor %}", a=list(range(1001)))


@pytest.mark.parametrize(
    ("locale", "body"),
    [
        *((locale, "Hello") for locale in (None, "", "en", "en-GB")),
        ("pt", "Ol\u00e1"),
        ("pt-PT", "Ol\u00e1"),
        ("pt-BR", "Oi"),
        ("pt-BR-1996", "Oi"),
        ("PT", "Ol\u00e1"),
        *((locale, "Hello") for locale in ("xx", "../pt", "pt/../pt", "pt\x00", "p")),
        ("portuguese", "Hello"),
    ],
)
def test_language_falls_back_to_the_nearest(templates: Path, locale: str | None, body: str) -> None:
    write(templates, "t", body="Hello")
    for language, text in (("pt", "Ol\u00e1"), ("pt-BR", "Oi")):
        write(templates, "t", language=language, body=text)
    assert render_text(name="t", data={}, recipient=Recipient(locale=locale)) == ("S", body)


CONTENT = Content(subject="Hello", body="First.\n\nSecond.", deep_link="https://example.com/1")
OTHERS = [channel for channel in Channel if channel is not Channel.EMAIL]


def message(channel: Channel, content: Content, recipient: Recipient = ADA, **data: Any) -> Message:
    return render_message(channel=channel, content=content, data=data, recipient=recipient)


def content_of(name: str, **fields: Any) -> Content:
    return Content(**({"subject": "S", "body": "B", "template_id": name} | fields))


def test_only_email_has_html() -> None:
    assert message(Channel.EMAIL, CONTENT).html is not None
    assert {message(channel, CONTENT).html for channel in OTHERS} == {None}


@each_case("channel", Channel)
def test_links_and_payload_go_on_every_channel(channel: Channel) -> None:
    sent = message(channel, MORE_THAN_TEXT)
    assert sent.image_url == "https://cdn.example.com/i.png"
    assert sent.deep_link == "app://orders/1"
    assert sent.payload == {"orderId": "1"}


def test_attachments_reply_to_and_unsubscribe_url_go_with_email_only() -> None:
    url = "https://example.com/a.pdf"
    files = (Attachment(url=url, filename="a.pdf", content_type="application/pdf"),)
    content = Content(subject="s", body="b", reply_to="help@example.com", attachments=files)
    for channel in Channel:
        sent = render_message(
            channel=channel,
            content=content,
            data={},
            recipient=ADA,
            unsubscribe_url="https://example.com/u",
        )
        found = (sent.reply_to, sent.attachments, sent.unsubscribe_url)
        whole = ("help@example.com", files, "https://example.com/u")
        assert found == (whole if channel is Channel.EMAIL else (None, (), None))


def test_channel_without_its_own_part_uses_subject_and_body() -> None:
    assert message(Channel.IN_APP, CONTENT).text == "First.\n\nSecond."
    assert message(Channel.WHATSAPP, CONTENT).text == "First.\n\nSecond."
    push = message(Channel.PUSH, CONTENT)
    assert (push.subject, push.text) == ("Hello", "First.\nSecond.")


def test_template_can_have_parts_for_a_channel(templates: Path) -> None:
    write(
        templates, "t", push="Short {{ a }}", push_title="Title {{ a }}", whatsapp="*Bold* {{ a }}"
    )
    push = message(Channel.PUSH, content_of("t"), a=1)
    assert (push.subject, push.text) == ("Title 1", "Short 1")
    assert message(Channel.WHATSAPP, content_of("t"), a=1).text == "*Bold* 1"
    in_app = message(Channel.IN_APP, content_of("t"), a=1)
    assert (in_app.subject, in_app.text) == ("S", "B")


def test_push_is_truncated(templates: Path) -> None:
    write(templates, "t", push="{{ a }}", push_title="{{ a }}")
    inline = Content(subject="word " * 60, body="word " * 300)
    for content in (inline, content_of("t")):
        push = message(Channel.PUSH, content, a="word " * 300)
        assert push.subject is not None
        assert len(push.subject) <= PUSH_TITLE_LENGTH
        assert len(push.text) <= PUSH_BODY_LENGTH
        assert push.subject.endswith("word\u2026")
        assert push.text.endswith("word\u2026")


def test_push_without_a_subject_has_no_title() -> None:
    assert message(Channel.PUSH, Content(body="b")).subject is None


def test_inline_subject_wins_over_the_push_title(templates: Path) -> None:
    write(templates, "t", push_title="Short")
    assert message(Channel.PUSH, content_of("t", subject="The caller's")).subject == "The caller's"
    assert message(Channel.PUSH, content_of("t", subject="S")).subject == "Short"


def test_secret_is_sent_on_every_channel() -> None:
    masked = content_of("mfa_code", subject=f"{MASK} is your login code", body=MASK, is_masked=True)
    for channel in Channel:
        sent = message(channel, masked, code="493817")
        assert sent.subject == "493817 is your login code"
        for text in (sent.text, sent.html) if channel is Channel.EMAIL else ():
            assert "493817" in str(text)
        assert MASK not in f"{sent.subject}{sent.text}{sent.html}"


def test_channel_part_is_in_the_recipients_language(templates: Path) -> None:
    write(templates, "t", push="Short", whatsapp="Hello")
    write(templates, "t", language="pt", push="Curto", whatsapp="Ol\u00e1")
    for locale, push, whatsapp in (("pt-BR", "Curto", "Ol\u00e1"), ("fr", "Short", "Hello")):
        recipient = Recipient(locale=locale)
        assert message(Channel.PUSH, content_of("t"), recipient).text == push
        assert message(Channel.WHATSAPP, content_of("t"), recipient).text == whatsapp


def test_channel_part_in_another_language_than_the_body_is_ignored(templates: Path) -> None:
    """A truncated body is better than a message in two languages."""
    write(templates, "t", push="Short", email_html="<h2>English</h2>", whatsapp="Hello")
    write(templates, "t", language="pt", body="Corpo")
    recipient, content = Recipient(locale="pt"), content_of("t", body="Corpo")
    assert message(Channel.PUSH, content, recipient).text == "Corpo"
    assert message(Channel.WHATSAPP, content, recipient).text == "Corpo"
    assert "English" not in str(message(Channel.EMAIL, content, recipient).html)


def test_accepted_content_is_sent_after_a_template_change(templates: Path) -> None:
    """A release can add template files whose variables the accepted data lacks."""
    write(templates, "t", email_html="{{ new }}", push="{{ new }}", whatsapp="{{ new }}")
    for channel in Channel:
        assert "As accepted." in message(channel, content_of("t", body="As accepted.")).text
    assert "As accepted." in str(message(Channel.EMAIL, content_of("t", body="As accepted.")).html)


def test_missing_secret_is_not_sent_as_a_mask() -> None:
    masked = content_of("mfa_code", subject=MASK, body=MASK, is_masked=True)
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
def test_variable_of_one_channel_is_checked_before_acceptance(
    templates: Path, channel: Channel, part: str
) -> None:
    write(templates, "t", **{part: "{{ extra }}"})
    options: dict[str, Any] = {"name": "t", "version": 0, "recipient": ADA}
    with pytest.raises(TemplateError) as problem:
        render_text(channels=[channel], data={}, **options)
    assert problem.value.variable == "extra"
    render_text(channels=[channel], data={"extra": 1}, **options)
    render_text(channels=[c for c in Channel if c is not channel], data={}, **options)


ENGLISH = WhatsAppTemplate(locale="en", name="shipped", language="en", parameters=("order",))
PORTUGUESE = WhatsAppTemplate(locale="pt", name="shipped", language="pt_PT", parameters=("order",))
BRAZILIAN = WhatsAppTemplate(locale="pt-BR", name="shipped", language="pt_BR", parameters=())
ALL = (ENGLISH, PORTUGUESE, BRAZILIAN)


@each_case(
    "locale, language",
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
def test_whatsapp_template_has_nearest_locale_or_first(locale: str | None, language: str) -> None:
    chosen = choose_whatsapp_template(ALL, locale=locale, data={"order": 1})
    assert chosen is not None
    assert chosen.language == language


@each_case("candidates, data", [([ENGLISH], {}), ([ENGLISH], {"order": None}), ([], {})])
def test_whatsapp_template_needs_its_variables(
    candidates: list[WhatsAppTemplate], data: dict[str, None]
) -> None:
    assert choose_whatsapp_template(candidates, locale="en", data=data) is None
