"""Each duration that a text of the console or the API states is the one that the code uses."""

import ast
import re
from collections.abc import Iterator
from datetime import timedelta

from access.clients import inbox_tokens
from access.staff import reauthentication
from api.health import OVERDUE_AFTER, _StandstillAlert
from api.inbox.stream.app import StreamTiming
from callbacks import outbox, subscriptions
from callbacks import retry as callback_retry
from console import failures, problems
from console.staff import oidc
from console.widgets.filters import RECENT, SPANS
from delivery import provider_pauses, rooms, test_clock
from delivery.sweeper import SWEEP_SECONDS
from domain.retry import MAX_OUTAGE
from domain.time import MAX_AHEAD, MAX_SNOOZE, MAX_TTL
from monitoring import dashboard, incidents, provider_health, workers
from notifications.bulk import results
from notifications.receipts import processor, webhook_log
from notifications.store import sent_tests
from notifyproject.platform import clock_check
from recipients import service_windows
from tasks.schedule import MINUTE
from tests.support.source import ROOT, files, nodes, text

_UNITS = {"s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_UNITS |= {"d": 86_400, "day": 86_400}
_DURATION = re.compile(r"\b([\d.]+)[ -](seconds?|s|minutes?|min|hours?|h|days?|d)\b")
_DAY_SHOWN = timedelta(hours=dashboard.HOURS)
FACTS: dict[str, dict[str, timedelta]] = {
    "api/test/clock.py": {
        "8 seconds": timedelta(seconds=test_clock.LEASE_WAIT_SECONDS),
        "11 seconds": timedelta(seconds=test_clock.BUDGET_SECONDS),
        "365 days": MAX_AHEAD,
    },
    "api/test/outbox.py": {"7 days": sent_tests.KEPT, "24 hours": service_windows.WINDOW},
    "api/callbacks/schemas.py": {"5 days": callback_retry.DISABLED_AFTER},
    "api/callbacks/views.py": {"30 days": outbox.MESSAGE_RETENTION},
    "api/health.py": {
        "30 s": timedelta(seconds=_StandstillAlert.INTERVAL),
        "150 s": OVERDUE_AFTER,
        "2 s": clock_check.MAX_OFFSET,
    },
    "api/http/problems.py": {"24 hours": subscriptions.SECRET_OVERLAP},
    "api/inbox/tokens.py": {"15 minutes": inbox_tokens.LIFETIME},
    "api/inbox/views.py": {
        "15 s": timedelta(seconds=StreamTiming().heartbeat),
        "90 days": MAX_SNOOZE,
    },
    "console/rooms.py": {"20 seconds": rooms.PATIENCE},
    "api/recipients/schemas.py": {"30 days": service_windows.RETENTION},
    "console/callbacks/endpoints.py": {"30 days": outbox.MESSAGE_RETENTION},
    "console/callbacks/messages.py": {"30 days": outbox.MESSAGE_RETENTION},
    "console/failures.py": {"24 h": failures.DEFAULT_PERIOD},
    "console/alerts.py": {"24 h": incidents.MUTED_FOR},
    "console/home.py": {"24 hours": _DAY_SHOWN},
    "console/problems.py": {"24 h": _DAY_SHOWN, "1 h": problems.RECENT},
    "console/texts/disabled.py": {"5 days": callback_retry.DISABLED_AFTER},
    "console/texts/failure_codes.py": {"24-hour": service_windows.WINDOW},
    "console/types/form.py": {"30 days": MAX_TTL},
    "console/types/structures.py": {"24-hour": service_windows.WINDOW},
    "console/webhook_log.py": {"30 days": webhook_log.LOG_RETENTION},
    "console/staff/oidc.py": {"10 minutes": oidc.ATTEMPT_LIFETIME},
    "console/widgets/reauthentication.py": {"10 minutes": reauthentication.WINDOW},
    "console/widgets/filters.py": {
        "24 hours": SPANS["24h"][1],
        "7 days": SPANS["7d"][1],
        "30 days": SPANS["30d"][1],
    },
    "templates/console/bulk/page.html": {"30 days": results.RETENTION},
    "templates/console/home_state.html": {
        "24 h": _DAY_SHOWN,
        "24 hours": incidents.MUTED_FOR,
    },
    "templates/console/providers.html": {
        "30 days": processor.EVENT_RETENTION,
        "3 d": MAX_OUTAGE,
        "10 min": provider_health.RECENT,
        "24 h": provider_health.DAY,
    },
    "templates/console/widgets/list_notices.html": {"7 days": SPANS[RECENT][1]},
    "templates/console/workers.html": {"0.5 s": timedelta(seconds=workers.PING_SECONDS)},
}
"""The value in the code of each duration that a file states."""
BOUNDS = {
    "console/providers.py": (
        "restarts within 1 min",
        provider_pauses.PAUSE_CHECK_INTERVAL + timedelta(seconds=SWEEP_SECONDS),
    ),
    "console/retention.py": ("within 1 min", timedelta(seconds=MINUTE)),
}
"""Durations that a file promises as a maximum, and the time that it takes."""
NO_FACTS = {
    "console/widgets/durations.py": "an example of a duration",
    "console/widgets/formats.py": "examples of formats",
    "templates/console/errors/problem.html": "advice",
    "templates/console/retention.html": "MongoDB's TTL monitor, which runs every 60 s by default",
}
"""Files whose durations don't speak of the code, and why."""


def stated() -> Iterator[tuple[str, str]]:
    """Yield each duration in a text of the console or the API, with its file."""
    for path in files("api", "console"):
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((str(path), duration[0]) for duration in _DURATION.finditer(node.value))
    for template in sorted((ROOT / "templates" / "console").rglob("*.html")):
        path = template.relative_to(ROOT)
        yield from ((str(path), duration[0]) for duration in _DURATION.finditer(text(path)))


def seconds(duration: str) -> float:
    number, unit = re.split(r"[ -]", duration)
    return float(number) * _UNITS[unit if unit in _UNITS else unit.removesuffix("s")]


def test_each_stated_duration_is_compared_with_the_code() -> None:
    found = {(path, duration) for path, duration in stated() if path not in {*NO_FACTS, *BOUNDS}}
    listed = {(path, fact) for path, facts in FACTS.items() for fact in facts}
    assert found - listed == set(), "name the code's value in FACTS"
    assert listed - found == set(), "they are gone"
    assert NO_FACTS.keys() - {path for path, _ in stated()} == set(), "they state none"


def test_stated_durations_are_those_of_the_code() -> None:
    wrong = {
        (path, fact): value
        for path, facts in FACTS.items()
        for fact, value in facts.items()
        if seconds(fact) != value.total_seconds()
    }
    assert wrong == {}


def test_promised_maximums_are_kept() -> None:
    for path, (sentence, taken) in BOUNDS.items():
        assert sentence in (ROOT / path).read_text()
        (duration,) = _DURATION.findall(sentence)
        assert taken.total_seconds() <= seconds(" ".join(duration)), path


def test_console_has_no_interval_of_a_periodic_task() -> None:
    sentence = re.compile(r"\b(runs|comes|sweeps|work) every \d|every (second|minute|hour)\b")
    pages = [path for path in files("console") if sentence.search(text(path))]
    # Operators change the schedule: console.widgets.formats.runs_every reads it.
    assert [str(path) for path in pages] == ["console/widgets/formats.py"]
