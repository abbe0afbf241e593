"""What is configured for mail: where answers go, and where attachments may come from."""

from typing import Any

import pytest

from notifyproject.settings.base import configure
from notifyproject.settings.environment import read


def configured(**variables: str) -> dict[str, Any]:
    return configure(read(variables))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", set()),
        (" , ,", set()),
        ("files.example.com", {"files.example.com"}),
        (" Files.example.com,cdn.example.com , ", {"files.example.com", "cdn.example.com"}),
    ],
)
def test_attachments_come_from_the_hosts_that_are_listed(text: str, hosts: set[str]) -> None:
    assert configured(ATTACHMENT_HOSTS=text)["ATTACHMENT_HOSTS"] == hosts


@pytest.mark.parametrize("text", ["support@example.com", "The Shop <support@example.com>"])
def test_answers_go_where_it_says(text: str) -> None:
    assert configured(EMAIL_REPLY_TO=text)["EMAIL_REPLY_TO"] == text


def test_answers_go_to_the_sender_if_nothing_is_said() -> None:
    assert configured()["EMAIL_REPLY_TO"] is None
