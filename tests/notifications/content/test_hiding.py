"""What of a new notification is stored as dots, and what is sealed beside it."""

from typing import Any

import pytest

from notifications.catalog.types import MASK
from notifications.content.redaction import Redacted, redact
from notifications.intake.requests import AttachmentRequest, ContentRequest
from tests.support.factories.contents import composed
from tests.support.factories.records import SHIPPED

pytestmark = pytest.mark.usefixtures("shipped_types")
CANARY = "CANARY-493021"
CODE = {"code": CANARY, "expires_in": 5}


def hidden(*, kind: str = "mfa_code", data: dict[str, Any] = CODE, **content: Any) -> Redacted:
    """Return what is hidden of a request that is in order."""
    found, problems = composed(kind=kind, data=data, **content)
    assert problems == []
    given = ContentRequest(**content)
    result = redact(
        found,
        has_own_subject=given.subject is not None,
        has_own_body=given.body is not None,
        data=data,
        type_config=SHIPPED[kind],
    )
    if result.secret is not None:
        assert CANARY not in f"{result}"
        assert CANARY not in f"{result.content}{result.data}"
        assert result.content.is_masked
        opened = result.secret.unmask(result.content)
        assert result.secret.data == data
        for name, value in content.items():
            if name != "attachments":
                assert getattr(opened, name) == value
    return result


def test_variables_are_hidden_and_kept() -> None:
    result = hidden()
    assert result.data == {"code": MASK, "expires_in": 5}
    assert result.content.subject == f"{MASK} is your login code"
    assert result.secret is not None
    assert result.secret.secrets == (CANARY,)
    assert not result.secret.has_inline_content


def test_a_type_without_secrets_hides_nothing() -> None:
    result = hidden(kind="kyc_rejected", data={"reason": CANARY})
    assert (result.secret, result.content.is_masked) == (None, False)


def test_the_marks_of_the_templates_own_type_count() -> None:
    result = hidden(kind="transactional", template_id="mfa_code")
    assert result.data == {"code": MASK, "expires_in": 5}
    assert result.secret is not None


def test_words_of_the_apps_own_are_hidden_whole() -> None:
    result = hidden(subject=f"Code {CANARY}", body=f"Use {CANARY}", data={})
    assert (result.content.subject, result.content.body) == (MASK, MASK)
    assert result.secret is not None
    assert result.secret.has_inline_content


def test_a_subject_made_of_the_bodys_first_line_is_hidden_with_it() -> None:
    result = hidden(body=f"{CANARY}\nis your code", data={})
    assert (result.content.subject, result.content.body) == (MASK, MASK)
    assert result.secret is not None
    assert result.secret.content["subject"] == CANARY


def test_a_subject_of_the_apps_own_is_hidden_with_a_templates_body() -> None:
    result = hidden(subject="Your code")
    assert result.content.subject == MASK
    assert result.content.body is not None
    assert MASK in result.content.body


def test_what_goes_along_is_hidden_where_it_repeats_a_secret(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com"})
    result = hidden(
        image_url=f"https://example.com/{CANARY}.png",
        deep_link=f"https://example.com/login?code={CANARY}",
        payload={"code": "1", "deep": [{"text": f"Use {CANARY}"}], "kept": 1},
        attachments=[
            AttachmentRequest(url=f"https://files.example.com/{CANARY}", filename="a.pdf")
        ],
    )
    said = result.content
    assert said.image_url == f"https://example.com/{MASK}.png"
    assert said.deep_link == f"https://example.com/login?code={MASK}"
    assert said.payload == {"code": MASK, "deep": [{"text": f"Use {MASK}"}], "kept": 1}
    assert said.attachments[0].url == f"https://files.example.com/{MASK}"
    assert result.secret is not None
    (opened,) = result.secret.unmask(said).attachments
    assert (opened.url, opened.filename) == (f"https://files.example.com/{CANARY}", "a.pdf")


def test_what_goes_along_with_words_of_the_apps_own_is_hidden_whole() -> None:
    result = hidden(
        data={},
        body="Use the link.",
        deep_link=f"https://example.com/reset?token={CANARY}",
        payload={"token": CANARY, "list": [1]},
    )
    assert result.content.deep_link is None
    assert result.content.payload == {"token": MASK, "list": [MASK]}
