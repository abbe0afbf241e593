"""Addresses in doubt: three different events in a row are proof."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recipients import suppressions
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")

PHONE: dict[str, Any] = {"channel": "whatsapp", "address": "+351912345678"}


def strike(event: str) -> int:
    return suppressions.record_soft_bounce(**PHONE, event=event, now=NOON)


def test_each_event_counts_once() -> None:
    assert [strike(event) for event in ("a", "b", "b", "a", "c")] == [1, 2, 2, 2, 3]


def test_the_same_event_told_by_many_at_once_counts_once() -> None:
    strike("a")
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(strike, ["b"] * 16))
    assert set(counts) == {2}


def test_what_reaches_them_ends_the_row() -> None:
    strike("a")
    suppressions.clear_soft_bounces(**PHONE)
    assert strike("b") == 1


def test_addresses_are_counted_apart() -> None:
    strike("a")
    other = PHONE | {"address": "+351912345679"}
    assert suppressions.record_soft_bounce(**other, event="b", now=NOON) == 1
