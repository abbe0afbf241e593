"""A worker that is asked to stop while its batch waits for a turn."""

from contextlib import nullcontext
from typing import Any

import pytest

from delivery import dispatcher
from domain.states import Channel
from notifyproject.platform import process
from tests.support.factories.notifications import NOON, accepted, delivery, read
from tests.support.fakes.provider import ScriptedProvider

pytestmark = pytest.mark.usefixtures("db", "own_process")


def test_a_batch_whose_turn_comes_too_late_is_given_back(
    mail: tuple[ScriptedProvider, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [accepted()["_id"] for _ in range(5)]

    def come_late(*_args: object, **_options: object) -> Any:
        process.request_shutdown()
        return nullcontext(True)

    monkeypatch.setattr(dispatcher.bulkhead, "acquire", come_late)
    report = dispatcher.dispatch(ids, channel=Channel.EMAIL, clock=lambda: NOON)
    assert mail[0].seen == []
    assert {one.notification_id for one in report.wakeups} == set(ids)
    given_back = [delivery(read(one)) for one in ids]
    assert {(d["claim"], d["claim_count"]) for d in given_back} == {(None, 0)}
