"""Workers whose clocks are ten minutes fast and ten minutes slow."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR

from .. import bodies
from ..crashing import rest
from ..expecting import accepted_id
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import waits
from ..processes import Stuck
from ..scenario import Scenario
from ..stand import Stand, standing

FAKETIME = "usr/lib/*/faketime/libfaketime.so.1"
"""From Debian's package; `make bench-servers` unpacks it."""
SKEWS = {"fast": "+600s", "slow": "-600s"}
FINAL_SECONDS = 300.0
AHEAD = timedelta(seconds=60)
BRIEF = 30
"""Seconds after which what nobody was there to send expires."""
PUNCTUAL = 2.0
"""P6: how late what is scheduled may be (p99). A second more is the clocks' own tolerance."""
TOLERANCE = 1.0
EVERY = timedelta(milliseconds=100)
"""Between two that are scheduled."""


def wrong_clocks(*, scheduled: int, expiring: int) -> Findings:
    """Let a fast and a slow worker send what is scheduled, and find what has expired."""
    with standing(webhooks=False) as stand:
        stand.start(stand.web(), stand.beat())
        brief = [_send(stand, f"brief-{n}", n, ttl=BRIEF) for n in range(expiring)]
        stand.broker.flushall()
        due = datetime.now(UTC) + AHEAD
        # One after the other: how late each is, and not how many the sandbox takes in a second.
        times = [due + EVERY * n for n in range(scheduled)]
        later = {
            _send(stand, f"later-{n}", expiring + n, scheduled_at=at.isoformat()): at
            for n, at in enumerate(times)
        }
        _wait_until(datetime.now(UTC) + timedelta(seconds=BRIEF))
        for name, skew in SKEWS.items():
            stand.worker(name).start(**_wrong_clock(skew))
        for one in stand.programs:
            one.wait_ready()
        stand.wait_final(timeout=FINAL_SECONDS)
        logs = [(stand.folder / f"{name}.log").read_text() for name in SKEWS]
        evidence = gather(stand)
        late = waits(evidence, later)
        asked = {one.notification_id for one in evidence.requests}
        return conclude(
            evidence,
            Bound(
                name="workers that found their clock wrong",
                value=sum("clock_corrected" in log for log in logs),
                least=len(SKEWS),
            ),
            Bound(name="seconds late at least", value=min(late, default=None), least=-TOLERANCE),
            Bound(
                name="seconds late at most",
                value=max(late, default=None),
                most=PUNCTUAL + TOLERANCE,
            ),
            Bound(name="sent after their time was over", value=len(asked & set(brief)), most=0),
        )


def _send(stand: Stand, key: str, number: int, **fields: object) -> str:
    return accepted_id(stand.client.send(bodies.mail(number, **fields), key=key))


def _wrong_clock(skew: str) -> dict[str, str]:
    """Return the environment of a process that reads the time wrong."""
    found = [*Path(BASE_DIR, ".data", "debian").glob(FAKETIME), *Path("/").glob(FAKETIME)]
    if not found:
        raise Stuck("There is no libfaketime: run `make bench-servers`.")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": skew,
        # Waits and time limits run as they do: only the time of day is wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _wait_until(moment: datetime) -> None:
    rest((moment - datetime.now(UTC)).total_seconds())


WRONG_CLOCKS = Scenario(
    number=17,
    injects="one worker's clock ten minutes fast, another's ten minutes slow",
    shows="P6, P7",
    run=wrong_clocks,
    full={"scheduled": 500, "expiring": 100},
    short={"scheduled": 30, "expiring": 10},
)
