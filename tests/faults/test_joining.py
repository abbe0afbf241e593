"""Joining the client's answers, the provider's requests, and the stored state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.chaos.analysis import (
    Analysis,
    analyze,
)
from bench.chaos.evidence import Answer, Attempt, Evidence, Kill, Request, Step, StoredNotification
from bench.chaos.findings import Bound, make_findings

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
WORKER = "host:7"


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def answer(key: str = "a", *, of: str | None = "n1", status: int | None = 202) -> Answer:
    """Return an answer to a client, by default about an accepted mail."""
    channels = ("email",) if of else ()
    return Answer(key=key, at=NOON, status=status, notification_id=of, channels=channels)


def request(attempt: int = 1, *, at: float = 1, of: str = "n1", **fields: Any) -> Request:
    """Return a request to the provider, by default about an accepted mail."""
    return Request(
        notification_id=of,
        channel=fields.get("channel", "email"),
        attempt=attempt,
        device_id=fields.get("device_id"),
        at=later(at),
        accepted=fields.get("accepted", True),
    )


def steps(*statuses: str, of: str = "n1", **fields: Any) -> list[Step]:
    """Return the transitions of a mail, one a second. A worker leases the mail while sending."""
    attempt, found = 0, []
    for number, status in enumerate(statuses):
        attempt += status == "sending"
        found.append(
            Step(
                notification_id=of,
                channel=fields.get("channel", "email"),
                status=status,
                attempt=attempt,
                worker=WORKER if status == "sending" else None,
                at=later(number),
            )
        )
    return found


def stored(status: str = "sent", *, of: str = "n1", key: str = "a") -> StoredNotification:
    return StoredNotification(notification_id=of, key=key, deliveries={"email": status})


def evidence(**fields: Any) -> Evidence:
    """Return the records of a run with one accepted and sent mail; ``fields`` replace some."""
    default: dict[str, Any] = {
        "answers": [answer()],
        "requests": [request()],
        "steps": steps("pending", "sending", "sent"),
        "stored": [stored()],
        "attempts": [attempt("sent")],
    }
    return Evidence(**(default | fields))


def attempt(status: str, number: int = 1, device_id: str | None = None) -> Attempt:
    return Attempt(
        notification_id="n1", channel="email", number=number, device_id=device_id, status=status
    )


def analysis(**fields: Any) -> Analysis:
    return analyze(evidence(**fields))


SENT = ("pending", "sending", "sent")
TWO = {"stored": [stored(), stored(of="n2")], "steps": [*steps(*SENT), *steps(*SENT, of="n2")]}
"""Two sent mails."""


def test_complete_run_is_clean() -> None:
    found = analysis()
    assert found.is_clean
    assert found.acknowledged == 1
    assert (found.double_unknown, found.in_flight, found.slowest_takeover) == ((), 0, None)


class TestLost:
    def test_acknowledged_but_not_stored(self) -> None:
        found = analysis(stored=[], steps=[], requests=[])
        assert found.lost == ("n1: not stored",)

    @pytest.mark.parametrize("status", ["pending", "sending", "unknown"])
    def test_acknowledged_but_not_final(self, status: str) -> None:
        ways = {"pending": (), "sending": ("sending",), "unknown": ("sending", "unknown")}
        found = analysis(stored=[stored(status)], steps=steps("pending", *ways[status]))
        assert found.lost == (f"n1.email: {status}",)

    @pytest.mark.parametrize("status", [409, 422, 503, None])
    def test_unacknowledged_is_not_lost(self, status: int | None) -> None:
        client_answers = [answer(of=None, status=status)]
        found = analysis(answers=client_answers, stored=[], steps=[], requests=[])
        assert found.lost == ()
        assert found.acknowledged == 0


class TestDouble:
    @pytest.mark.parametrize(
        ("first", "way", "double", "double_unknown"),
        [
            ("failed", (), ("n1.email.2",), ()),
            ("unknown", (), (), ("n1.email.2",)),
            ("sent", ("sending", "unknown", "pending"), (), ("n1.email.2",)),
        ],
        ids=["known outcome", "unknown outcome", "late correction of an unknown outcome"],
    )
    def test_second_copy(
        self,
        first: str,
        way: tuple[str, ...],
        double: tuple[str, ...],
        double_unknown: tuple[str, ...],
    ) -> None:
        found = analysis(
            requests=[request(1), request(2, at=9)],
            attempts=[attempt(first), attempt("sent", 2)],
            steps=steps("pending", *way, "sending", "sent"),
        )
        assert (found.double, found.double_unknown) == (double, double_unknown)

    def test_same_attempt_twice(self) -> None:
        found = analysis(requests=[request(1), request(1, at=9)], attempts=[attempt("unknown")])
        assert found.double == ("n1.email.1",)

    def test_each_copy_needs_its_own_unknown_outcome(self) -> None:
        found = analysis(
            requests=[request(1), request(2, at=9), request(3, at=20)],
            attempts=[attempt("unknown"), attempt("sent", 2), attempt("sent", 3)],
        )
        assert found.double == ("n1.email.3",)
        assert found.double_unknown == ("n1.email.2",)

    def test_refused_request_is_no_copy(self) -> None:
        found = analysis(requests=[request(1, accepted=False), request(2, at=9)])
        assert found.double == found.double_unknown == ()

    def test_each_device_gets_its_own_copy(self) -> None:
        phones = [request(1, device_id="phone"), request(1, device_id="tablet")]
        assert analysis(requests=phones).double == ()


class TestIllegal:
    @pytest.mark.parametrize(
        ("way", "finding"),
        [
            (("pending", "sending", "sent", "pending"), "n1.email: sent to pending"),
            (("pending", "cancelled", "sending"), "n1.email: cancelled to sending"),
            (("sent",), "n1.email: begins as sent"),
            (("pending", "gone"), "n1.email: pending to gone"),
        ],
    )
    def test_transition_that_is_not_in_the_table(self, way: tuple[str, ...], finding: str) -> None:
        found = analysis(steps=steps(*way), stored=[stored(way[-1])])
        assert found.illegal == (finding,)

    def test_unchanged_status_is_no_transition(self) -> None:
        assert analysis(steps=steps("pending", "pending", "sending", "sent", "sent")).is_clean

    def test_status_without_a_transition(self) -> None:
        found = analysis(steps=steps("pending", "sending"))
        assert found.illegal == ("n1.email: no recorded step to sent",)

    def test_sent_but_not_stored(self) -> None:
        found = analysis(requests=[request(), request(of="n2")])
        assert found.illegal == ("n2.email: sent and not stored",)


class TestKeys:
    def test_one_key_with_two_ids_in_answers(self) -> None:
        found = analysis(answers=[answer(), answer(of="n2")])
        assert found.split == ("a: n1, n2",)

    def test_one_key_with_two_unanswered_notifications(self) -> None:
        assert analysis(**TWO).split == ("a: n1, n2",)

    def test_bulk_request_creates_one_notification_per_item(self) -> None:
        assert analysis(answers=[answer(), replace(answer(of="n2"), item=1)], **TWO).is_clean


class TestBalance:
    def test_accepted_equals_open_plus_final(self) -> None:
        assert analysis(stored=[stored("pending")], steps=steps("pending")).unbalanced == ()

    def test_accepted_channel_is_missing(self) -> None:
        both = replace(answer(), channels=("email", "push"))
        assert analysis(answers=[both]).unbalanced == ("push: accepted 1, open and final 0",)

    def test_stored_counts_as_accepted_without_an_answer(self) -> None:
        assert analysis(answers=[answer(of=None, status=None)]).unbalanced == ()


class TestKills:
    @pytest.mark.parametrize(
        ("worker", "at", "expected"),
        [
            (WORKER, 1.5, (1, 0.5)),
            ("host:8", 1.5, (0, None)),
            (WORKER, 0.5, (0, None)),
            (WORKER, 2.5, (0, None)),
        ],
    )
    def test_only_deliveries_held_by_the_killed_worker_were_in_flight(
        self, worker: str, at: float, expected: tuple[int, float | None]
    ) -> None:
        found = analysis(kills=[Kill(worker=worker, at=later(at))])
        assert (found.in_flight, found.slowest_takeover) == expected


class TestFindings:
    @pytest.mark.parametrize(
        ("bound", "met"),
        [
            (Bound(name="x", value=5, maximum=5), True),
            (Bound(name="x", value=6, maximum=5), False),
            (Bound(name="x", value=4, minimum=5), False),
            (Bound(name="x", value=None, maximum=5), False),
        ],
    )
    def test_bound_is_met_only_by_a_value_within_it(self, bound: Bound, met: bool) -> None:
        assert bound.is_met is met
        assert make_findings(evidence(), bound).is_met is met

    def test_met_bounds_do_not_outweigh_a_loss(self) -> None:
        findings = make_findings(evidence(stored=[], steps=[], requests=[]))
        assert not findings.is_met
        assert "lost: n1: not stored" in findings.problems()
        assert findings.as_json()["lost"] == 1
