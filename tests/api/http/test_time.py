"""When a notification is sent, and until when."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from domain.time import utc_now
from tests.support.clients.api import App, pointers


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_(**span: float) -> str:
    return iso(utc_now() + timedelta(**span))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def next_clock_change(zone: str, *, forward: bool) -> str:
    """Return the next day on which the clocks of a zone go forward or back."""
    day = utc_now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    while True:
        before, after = (
            (day + timedelta(days=n)).astimezone(ZoneInfo(zone)).utcoffset() for n in (0, 1)
        )
        if before != after and (after > before) is forward:
            return day.strftime("%Y-%m-%d")
        day += timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-12-01T09:00:00", "naive_datetime"),
        ("2026-12-01", "invalid_datetime"),
        ("2026-W49-2T09:00:00Z", "invalid_datetime"),
        ("2026-12-01 09:00:00Z", "invalid_datetime"),
        ("٢٠٢٦-12-01T09:00:00Z", "invalid_datetime"),
        ("2026-12-01T09:00:60Z", "invalid_datetime"),
        ("2026-12-01T24:00:00Z", "invalid_datetime"),
        ("2027-02-30T09:00:00Z", "invalid_datetime"),
        ("10000-01-01T00:00:00Z", "invalid_datetime"),
        ("2026-12-01T09:00:00+99:00", "invalid_datetime"),
        ("2026-12-01T09:00Z", "invalid_datetime"),
        ("0001-01-01T00:00:00+05:00", "invalid_datetime"),
        ("tomorrow", "invalid_datetime"),
        ("", "invalid_datetime"),
    ],
)
@pytest.mark.parametrize("field", ["scheduled_at", "expires_at"])
def test_a_time_that_is_none_is_refused(app: App, field: str, text: str, code: str) -> None:
    assert pointers(app.notify(**{field: text})) == {f"/{field}": code}


def test_a_number_is_no_time(app: App) -> None:
    assert pointers(app.notify(scheduled_at=1_800_000_000)) == {"/scheduled_at": "wrong_type"}


def test_what_is_finer_than_a_millisecond_is_cut_off_and_shown(app: App) -> None:
    day = (utc_now() + timedelta(days=1)).strftime("%Y-%m-%d")
    answer = app.notify(scheduled_at=f"{day}T10:00:00.123999999+01:00")
    assert moment(answer.json()["scheduled_at"]) == datetime.fromisoformat(
        f"{day}T09:00:00.123+00:00"
    )


def test_a_little_in_the_past_is_now(app: App) -> None:
    answer = app.notify(scheduled_at=in_(minutes=-4))
    assert answer.json()["status"] == "queued"


def test_further_in_the_past_is_refused(app: App) -> None:
    assert pointers(app.notify(scheduled_at=in_(minutes=-6))) == {"/scheduled_at": "in_the_past"}


def test_over_a_year_ahead_is_refused(app: App) -> None:
    assert pointers(app.notify(scheduled_at=in_(days=366))) == {"/scheduled_at": "too_far_ahead"}
    assert app.notify(scheduled_at=in_(days=364)).status_code == 202


def test_a_scheduled_notification_waits(app: App, stored: Any) -> None:
    answer = app.notify(scheduled_at=in_(hours=2))
    assert answer.json()["status"] == "created"
    assert stored(answer)["due_at"] == moment(answer.json()["scheduled_at"])


def test_a_scheduled_in_app_notification_is_not_delivered_yet(app: App) -> None:
    answer = app.notify(
        channels=["in_app"], user_id="ada", recipient=..., scheduled_at=in_(hours=2)
    )
    assert answer.json()["delivery"][0]["status"] == "pending"


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"ttl": 0}, "/ttl", "invalid_ttl"),
        ({"ttl": -1}, "/ttl", "invalid_ttl"),
        ({"ttl": 30 * 86_400 + 1}, "/ttl", "invalid_ttl"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at", "expires_before_sending"),
        ({"ttl": 60, "expires_at": "2030-01-01T00:00:00Z"}, "/ttl", "conflict"),
    ],
)
def test_an_expiry_that_makes_no_sense_is_refused(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    assert pointers(app.notify(**fields)) == {pointer: code}


def test_expiring_at_the_send_time_is_refused(app: App) -> None:
    at = in_(hours=2)
    answer = app.notify(scheduled_at=at, expires_at=at)
    assert pointers(answer) == {"/expires_at": "expires_before_sending"}


def test_a_ttl_counts_from_the_send_time(app: App) -> None:
    body = app.notify(scheduled_at=in_(hours=2), ttl=60).json()
    assert moment(body["expires_at"]) - moment(body["scheduled_at"]) == timedelta(seconds=60)


def test_a_type_supplies_the_ttl(app: App) -> None:
    body = app.notify(type="mfa_code", data={"code": "1"}).json()
    assert moment(body["expires_at"]) - moment(body["created_at"]) == timedelta(seconds=300)


class TestLocalTime:
    """A time on the recipient's wall clock."""

    def ask(self, app: App, at: str, zone: str | None = "Europe/London", **fields: Any) -> Any:
        local = {"at": at, **({"timezone": zone} if zone else {})}
        return app.notify(scheduled_local=local, **fields)

    def test_it_is_resolved_to_utc(self, app: App) -> None:
        day = (utc_now() + timedelta(days=2)).strftime("%Y-%m-%d")
        body = self.ask(app, f"{day}T09:00", "Asia/Kolkata").json()
        assert moment(body["scheduled_at"]) == datetime.fromisoformat(f"{day}T03:30:00+00:00")
        assert body["adjusted"] is False

    def test_a_time_the_clocks_skip_is_the_first_instant_after(self, app: App) -> None:
        day = next_clock_change("Europe/London", forward=True)
        body = self.ask(app, f"{day}T01:30").json()
        assert body["scheduled_at"] == f"{day}T01:00:00Z"
        assert body["adjusted"] is True

    def test_a_time_that_happens_twice_is_the_first(self, app: App) -> None:
        day = next_clock_change("Europe/London", forward=False)
        body = self.ask(app, f"{day}T01:30").json()
        assert body["scheduled_at"] == f"{day}T00:30:00Z"
        assert body["adjusted"] is False

    def test_the_recipients_zone_is_used_if_none_is_given(self, app: App) -> None:
        day = (utc_now() + timedelta(days=2)).strftime("%Y-%m-%d")
        recipient = {"email": "ada@example.com", "timezone": "Asia/Kolkata"}
        body = self.ask(app, f"{day}T09:00", None, recipient=recipient).json()
        assert moment(body["scheduled_at"]) == datetime.fromisoformat(f"{day}T03:30:00+00:00")

    @pytest.mark.parametrize(
        ("at", "zone", "pointer", "code"),
        [
            ("2099-03-28T01:30Z", "Europe/London", "/scheduled_local/at", "invalid_datetime"),
            ("2027-02-30T01:30", "Europe/London", "/scheduled_local/at", "invalid_datetime"),
            ("2099-03-28T01:30", "Nowhere/Land", "/scheduled_local/timezone", "unknown_timezone"),
            (
                "2099-03-28T01:30",
                "../../etc/passwd",
                "/scheduled_local/timezone",
                "unknown_timezone",
            ),
            ("2099-03-28T01:30", None, "/scheduled_local/timezone", "required"),
        ],
    )
    def test_what_cannot_be_resolved_is_refused(
        self, app: App, at: str, zone: str | None, pointer: str, code: str
    ) -> None:
        assert pointers(self.ask(app, at, zone)) == {pointer: code}

    def test_it_excludes_scheduled_at(self, app: App) -> None:
        answer = self.ask(app, "2099-03-28T03:30", scheduled_at=in_(hours=1))
        assert pointers(answer) == {"/scheduled_local": "conflict"}
