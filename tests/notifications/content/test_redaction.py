"""Redaction of secrets: by name, by value, and in stored content."""

import html
import json
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.channels import Channel
from domain.content import SensitiveContent
from domain.errors import FailureCode, PermanentError, ProviderResponse
from notifications.catalog.types import MASK
from notifications.content import rendering
from notifications.content.redaction import (
    MAX_SECRETS,
    WITHHELD,
    Redacted,
    find_secrets,
    mask,
    mask_all,
    mask_response,
    redact,
    remove_secrets,
)
from notifications.intake.requests import AttachmentRequest, ContentRequest
from providers.contract import SendResult
from tests.support.factories.notifications import SHIPPED
from tests.support.factories.requests import ADA_RECIPIENT as ADA
from tests.support.factories.requests import composed

pytestmark = pytest.mark.usefixtures("shipped_types")

in_shipped_types = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = frozenset({"code", "link"})
CANARY = "CANARY-493021"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "code", "link"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"code": CANARY, "n": 5}, {"code": MASK, "n": 5}),
        ({"a": {"code": CANARY}}, {"a": {"code": MASK}}),
        ({"a": [{"b": {"code": CANARY}}]}, {"a": [{"b": {"code": MASK}}]}),
        ({"code": {"value": CANARY, "hint": None}}, {"code": MASK}),
        ({"code": CANARY, "text": f"Use {CANARY}."}, {"code": MASK, "text": f"Use {MASK}."}),
        (
            {"code": 493021, "again": 493021, "other": 493},
            {"code": MASK, "again": MASK, "other": 493},
        ),
        ({"code": "12", "year": "2012"}, {"code": MASK, "year": "2012"}),
        (
            {"other": "kept", "flag": True, "none": None},
            {"other": "kept", "flag": True, "none": None},
        ),
    ],
    ids=[
        "by name",
        "nested",
        "in a list",
        "whole",
        "repeated",
        "a number",
        "too short to look for",
        "no secret",
    ],
)
def test_secret_values_are_masked(data: dict[str, Any], expected: dict[str, Any]) -> None:
    assert mask(data, NAMES) == expected


@in_shipped_types
@given(data=st.dictionaries(st.sampled_from(["a", "code"]), JSON, max_size=3))
def test_no_secret_is_left_in_nested_data(data: dict[str, Any]) -> None:
    assert CANARY in find_secrets({**data, "deep": [{"code": CANARY}]}, NAMES)
    shown = mask({**data, "deep": [{"code": CANARY}], "text": f"<{CANARY}>"}, NAMES)
    assert CANARY not in json.dumps(shown)
    assert mask(shown, NAMES) == shown


def test_values_are_ordered_longest_first() -> None:
    assert find_secrets({"code": ["1234", "123456", "1"], "link": True}, NAMES) == (
        "123456",
        "1234",
    )


@in_shipped_types
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=4, max_size=30))
def test_value_is_found_in_any_encoding(secret: str) -> None:
    shown = [
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        json.dumps(secret, ensure_ascii=False).replace("/", "\\/"),
        html.escape(secret),
        quote(secret),
        quote(secret, safe=""),
    ]
    for text in shown:
        assert MASK in remove_secrets(f"before {text} after", [secret])


def test_masked_payload_keeps_its_shape() -> None:
    payload = {"a": CANARY, "b": [1, {"c": 2.5}], "d": None, "e": False}
    assert mask_all(payload) == {"a": MASK, "b": [MASK, {"c": MASK}], "d": None, "e": False}


SECRET = SensitiveContent(data={"code": CANARY}, secrets=(CANARY,))


def refused(content: str) -> PermanentError:
    answer = ProviderResponse(status=400, code="x", excerpt=content)
    return PermanentError(f"No: {content}", code=FailureCode.REJECTED, response=answer)


def test_secret_in_a_response_is_masked() -> None:
    error = mask_response(refused(f"your code is {CANARY}"), SECRET)
    assert (error.reason, str(error)) == (f"No: your code is {MASK}",) * 2
    assert error.response == ProviderResponse(status=400, code="x", excerpt=f"your code is {MASK}")
    answer = ProviderResponse(status=202, excerpt=CANARY)
    taken = mask_response(SendResult(provider_id="1", response=answer), SECRET)
    assert taken.response.excerpt == MASK


def test_truncated_secret_is_masked() -> None:
    for size in range(3, len(CANARY)):
        error = mask_response(refused(f"code={CANARY[:size]}"), SECRET)
        assert error.response is not None
        assert error.response.excerpt == f"code={MASK}"


def test_response_to_inline_content_is_withheld() -> None:
    error = mask_response(refused("Use 1234"), SensitiveContent(data={}, has_inline_content=True))
    assert error.response == ProviderResponse(status=400, code="x", excerpt=WITHHELD)


def test_response_without_secrets_is_unchanged() -> None:
    error = refused("anything")
    assert mask_response(error, None) is error
    assert error.response == ProviderResponse(status=400, code="x", excerpt="anything")


def test_secrets_are_not_in_the_repr() -> None:
    assert CANARY not in repr(
        SensitiveContent(data={"code": CANARY}, content={"body": CANARY}, secrets=(CANARY,))
    )


CODE = {"code": CANARY, "expires_in": 5}


def redacted(*, kind: str = "mfa_code", data: dict[str, Any] = CODE, **content: Any) -> Redacted:
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


def test_sensitive_variables_are_masked_and_kept_encrypted() -> None:
    result = redacted()
    assert result.data == {"code": MASK, "expires_in": 5}
    assert result.content.subject == f"{MASK} is your login code"
    assert result.secret is not None
    assert result.secret.secrets == (CANARY,)
    assert not result.secret.has_inline_content


def test_type_without_secrets_masks_nothing() -> None:
    result = redacted(kind="kyc_rejected", data={"reason": CANARY})
    assert (result.secret, result.content.is_masked) == (None, False)


def test_sensitive_variables_of_the_template_type_count() -> None:
    result = redacted(kind="transactional", template_id="mfa_code")
    assert result.data == {"code": MASK, "expires_in": 5}
    assert result.secret is not None


def test_inline_content_is_masked_completely() -> None:
    result = redacted(subject=f"Code {CANARY}", body=f"Use {CANARY}", data={})
    assert (result.content.subject, result.content.body) == (MASK, MASK)
    assert result.secret is not None
    assert result.secret.has_inline_content


def test_derived_subject_is_masked_with_the_body() -> None:
    result = redacted(body=f"{CANARY}\nis your code", data={})
    assert (result.content.subject, result.content.body) == (MASK, MASK)
    assert result.secret is not None
    assert result.secret.content["subject"] == CANARY


def test_inline_subject_is_masked_beside_a_template_body() -> None:
    result = redacted(subject="Your code")
    assert result.content.subject == MASK
    assert result.content.body is not None
    assert MASK in result.content.body


def test_links_and_payload_are_masked_where_they_repeat_a_secret(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com"})
    result = redacted(
        image_url=f"https://example.com/{CANARY}.png",
        deep_link=f"https://example.com/login?code={CANARY}",
        payload={"code": "1", "deep": [{"text": f"Use {CANARY}"}], "kept": 1},
        attachments=[
            AttachmentRequest(url=f"https://files.example.com/{CANARY}", filename="a.pdf")
        ],
    )
    content = result.content
    assert content.image_url == f"https://example.com/{MASK}.png"
    assert content.deep_link == f"https://example.com/login?code={MASK}"
    assert content.payload == {"code": MASK, "deep": [{"text": f"Use {MASK}"}], "kept": 1}
    assert content.attachments[0].url == f"https://files.example.com/{MASK}"
    assert result.secret is not None
    (opened,) = result.secret.unmask(content).attachments
    assert (opened.url, opened.filename) == (f"https://files.example.com/{CANARY}", "a.pdf")


def test_links_and_payload_of_inline_content_are_masked_completely() -> None:
    result = redacted(
        data={},
        body="Use the link.",
        deep_link=f"https://example.com/reset?token={CANARY}",
        payload={"token": CANARY, "list": [1]},
    )
    assert result.content.deep_link is None
    assert result.content.payload == {"token": MASK, "list": [MASK]}


MFA_DATA = {"code": "493817", "expires_in": 5}


def test_missing_secret_is_reported_and_not_masked() -> None:
    content, problems = composed(kind="mfa_code", data={"expires_in": 5})
    assert problems == [("/data/code", "missing_variable")]
    assert not content.is_masked


def test_inline_subject_is_sent_with_the_unmasked_body() -> None:
    """Masked content is rendered again when it is sent, and keeps the client's subject."""
    content, _ = composed(kind="mfa_code", data=MFA_DATA, subject="Your code")
    message = rendering.render_message(
        channel=Channel.EMAIL, content=content, data=MFA_DATA, recipient=ADA
    )
    assert message.subject == "Your code"
    assert "493817" in message.text


def test_accepted_subject_is_sent_unchanged() -> None:
    content, _ = composed(kind="mfa_code", data=MFA_DATA, template_id="forgot_password")
    stored = replace(content, is_masked=True, subject="As it was accepted")
    data = MFA_DATA | {"reset_link": "https://example.com/r"}
    message = rendering.render_message(
        channel=Channel.EMAIL, content=stored, data=data, recipient=ADA
    )
    assert message.subject == "As it was accepted"


@pytest.mark.parametrize(
    "data",
    [
        {"code": [f"aaaa{n:05}" for n in range(6_000)], "t": ["bbbb"] * 3_000},
        {"code": {"a": list(range(1_000, 1_100))}, "t": ["bbbb"] * 20_000},
        {"code": "a" * 190_000, "t": ["bbbb"] * 3_000},
    ],
)
def test_many_values_and_many_texts_are_masked_within_a_request(data: dict[str, Any]) -> None:
    before = time.process_time()
    masked = mask(data, {"code"})
    assert time.process_time() - before < 2
    assert masked["code"] == MASK
    assert set(masked["t"]) <= {"bbbb", MASK}


def test_with_too_many_values_every_text_and_number_is_masked() -> None:
    codes = [f"code-{n}" for n in range(MAX_SECRETS + 1)]
    data = {"code": codes, "note": {"text": "see code-7", "count": 3, "is_new": True, "none": None}}
    note = {"text": MASK, "count": MASK, "is_new": True, "none": None}
    assert mask(data, {"code"}) == {"code": MASK, "note": note}
