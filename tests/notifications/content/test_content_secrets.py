"""What a notification says of secrets: nothing, until it is sent."""

from dataclasses import replace

import pytest

from domain.states import Channel
from notifications.catalog.types import MASK
from notifications.content import rendering
from tests.support.factories.contents import ADA, composed

pytestmark = pytest.mark.usefixtures("shipped_types")
SECRET = {"code": "493817", "expires_in": 5}


def test_what_is_stored_of_a_secret_is_a_mask() -> None:
    content, problems = composed(kind="mfa_code", data=SECRET)
    assert problems == []
    assert content.is_masked
    assert content.subject == f"{MASK} is your login code"
    assert "493817" not in repr(content)


def test_a_secret_that_was_not_given_is_missing_and_not_masked() -> None:
    content, problems = composed(kind="mfa_code", data={"expires_in": 5})
    assert problems == [("/data/code", "missing_variable")]
    assert not content.is_masked


def test_a_subject_of_the_callers_leaves_the_body_masked() -> None:
    content, _ = composed(kind="mfa_code", data=SECRET, subject="Your code")
    assert content.is_masked
    assert content.body is not None
    assert MASK in content.body


def test_a_subject_of_the_callers_is_sent_with_a_masked_body() -> None:
    """What is masked is rendered anew when it is sent: the caller's subject must outlive that."""
    content, _ = composed(kind="mfa_code", data=SECRET, subject="Your code")
    message = rendering.render_message(
        channel=Channel.EMAIL, content=content, data=SECRET, recipient=ADA
    )
    assert message.subject == "Your code"
    assert "493817" in message.text


def test_a_subject_without_the_secret_is_sent_as_it_was_accepted() -> None:
    content, _ = composed(kind="mfa_code", data=SECRET, template_id="forgot_password")
    stored = replace(content, is_masked=True, subject="As it was accepted")
    data = SECRET | {"reset_link": "https://example.com/r"}
    message = rendering.render_message(
        channel=Channel.EMAIL, content=stored, data=data, recipient=ADA
    )
    assert message.subject == "As it was accepted"
