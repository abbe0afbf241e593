"""The messages of the app, through days that take a second."""

import uuid
from dataclasses import replace

import pytest
from notifyproject_client import NotificationRejectedError
from notifyproject_client.rest.api.notifications import read_notification
from trial import Customer, Messages


@pytest.fixture
def messages(notify):
    return Messages(notify)


@pytest.fixture
def ada():
    """Return a customer whom no earlier run has written to."""
    return Customer(f"test-{uuid.uuid4().hex}", "ada@example.com", "+351912345678")


def test_plan_of_three_days(messages, notify_clock, notify_outbox, ada):
    messages.welcome(ada)
    notify_clock.settle()
    assert [one.channel for one in notify_outbox.messages()] == ["in_app"]
    notify_clock.advance("1d")
    assert notify_outbox.last().channel == "email"
    notify_clock.advance("2d")
    assert [one.channel for one in notify_outbox.messages()] == ["in_app", "email", "sms"]
    assert notify_outbox.last().text == "Your trial of Sunrise has started."


def test_plan_ends_once_it_is_read(messages, notify, notify_clock, notify_outbox, ada):
    sent = messages.welcome(ada)
    notify_clock.advance("1d")
    read_notification.sync(sent.id, client=notify.rest)
    notify_clock.advance("7d")
    assert [one.channel for one in notify_outbox.messages()] == ["in_app", "email"]


def test_three_comments_are_one_email(messages, notify_clock, notify_outbox, ada):
    messages.comment(ada, document="Plan", author="Grace")
    notify_clock.advance("10m")
    messages.comment(ada, document="Plan", author="Alan")
    messages.comment(ada, document="Plan", author="Edsger")
    notify_clock.advance("15m")
    assert notify_outbox.messages() == []
    notify_clock.advance("10m")
    [email] = notify_outbox.messages()
    assert email.text == "3 comments on Plan."


def test_receipt_arrives_although_the_mail_server_fails_twice(
    messages, notify_clock, notify_outbox, ada
):
    customer = replace(ada, email=f"flaky+{ada.id}@example.com")
    messages.receipt(customer, amount="49.90")
    notify_clock.settle()
    assert notify_outbox.messages() == []
    happened = notify_clock.advance("20m")
    assert [one.event for one in happened if one.event in ("waits", "sent")][-1] == "sent"
    assert notify_outbox.last().text == "We received 49.90."


def test_nobody_is_told_of_a_stream_that_is_over(messages, notify_clock, notify_outbox, ada):
    messages.live(ada, title="Sunrise")
    happened = notify_clock.advance("2h")
    assert (happened[-1].channel, happened[-1].event) == ("sms", "expired")
    notify_clock.advance("1d")
    assert [one.channel for one in notify_outbox.messages()] == ["in_app"]


def test_wrong_address_is_refused(messages, ada):
    with pytest.raises(NotificationRejectedError) as refused:
        messages.receipt(replace(ada, email="ada@example"), amount="49.90")
    assert refused.value.problem.errors[0].pointer == "/recipient/email"


def test_customer_is_welcomed_once(messages, ada):
    assert messages.welcome(ada).id == messages.welcome(ada).id
