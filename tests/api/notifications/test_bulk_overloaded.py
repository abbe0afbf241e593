"""With too much waiting to be sent, more in bulk has to wait as well; what is critical has not."""

from typing import Any

import pytest

from notifications.queueing import backlog
from tests.support.clients.api import App
from tests.support.clients.bulk import bring, ids, item, stored


@pytest.fixture
def overloaded(backlog_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let too much wait to be sent."""
    monkeypatch.setattr(backlog, "is_overloaded", lambda **_: True)


def critical(number: int) -> dict[str, Any]:
    return item(number, priority="critical")


@pytest.mark.usefixtures("overloaded")
class TestOverloaded:
    def test_a_call_has_to_come_again_and_has_not_used_its_key(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = bring(app, item(0), 5, key="k")
        assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        assert stored() == []
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: False)
        assert bring(app, item(0), 5, key="k").json()["accepted"] == 1

    def test_critical_ones_are_accepted_and_the_others_told(self, app: App) -> None:
        login = item(2, type="mfa_code", data={"code": "123456", "expires_in": 5})
        answer = bring(app, item(0), critical(1), login, item(3, type="nope"), key="k")
        codes = [one.get("error", {}).get("code") for one in answer.json()["results"]]
        assert codes == ["overloaded", None, None, "overloaded"]
        assert answer.json()["results"][0]["error"]["status"] == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert [d["priority"] for d in stored()] == ["critical", "critical"]
        again = bring(app, item(0), critical(1), login, item(3, type="nope"), key="k")
        assert ids(again) == ids(answer)

    def test_a_call_of_critical_ones_is_like_any_other(self, app: App) -> None:
        answer = bring(app, critical(0), critical(1))
        assert (answer.status_code, answer.json()["accepted"]) == (200, 2)
        assert "Retry-After" not in answer.headers

    def test_one_that_comes_alone_is_accepted(self, app: App) -> None:
        assert app.notify().status_code == 202

    def test_what_was_accepted_before_is_answered_again(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: False)
        first = bring(app, item(0), key="k")
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: True)
        again = bring(app, item(0), key="k")
        assert (again.status_code, ids(again)) == (200, ids(first))


@pytest.mark.usefixtures("backlog_anew")
def test_with_more_waiting_than_the_limit_a_call_has_to_come_again(app: App, settings: Any) -> None:
    """With real notifications waiting, and the measure that is really taken."""
    settings.BULK_PENDING_LIMIT = 2
    assert bring(app, item(0), item(1), item(2)).status_code == 200
    assert bring(app, item(3)).status_code == 200, "measured a moment ago"
    backlog.clear()
    assert bring(app, item(4)).status_code == 503
