"""Every test has connections of its own, and leaves none open."""

import smtplib
from collections.abc import Iterator
from typing import Any

import pytest

from notifications.channels import transfers


@pytest.fixture(autouse=True)
def _own_pool() -> Iterator[None]:
    yield
    transfers.close_all()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[smtplib.SMTP]]:
    """Keep every connection a test opens to a mail server, and close what is left of them."""
    connections: list[smtplib.SMTP] = []
    make = smtplib.SMTP.__init__

    def remembering(self: smtplib.SMTP, *args: Any, **options: Any) -> None:
        connections.append(self)
        make(self, *args, **options)

    monkeypatch.setattr(smtplib.SMTP, "__init__", remembering)
    yield connections
    for connection in connections:
        connection.close()
