"""One request for many mails, and what to do when it is refused for the sake of a few. Pure.

SendGrid takes a request as a whole or not at all. If it refuses one because of some recipient, each
half is asked for on its own, and so on down to the recipient it is about. Nothing is sent twice:
what was refused was not sent, and what was not clearly refused is not asked for again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..errors import ChannelUnavailable, ProviderError, TransientError
from .base import NotTried, SendResult

MAX_REQUESTS = 100
"""For one batch. Two bad addresses among a thousand take about 40."""

Outcome = SendResult | ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one request."""

    outcome: Outcome
    is_about_a_recipient: bool = False
    """It was refused, and another request without one of the recipients might not be."""


def ask_in_halves(
    requests: Iterable[Sequence[int]],
    *,
    ask: Callable[[Sequence[int]], Verdict],
    has_time: Callable[[], bool],
) -> dict[int, Outcome]:
    """Return what became of each mail by its number, the largest groups being asked for first.

    ``requests`` says whose mails go together; ``ask`` makes one request for some of them. It is not
    called again when the provider takes nothing at all, when ``has_time`` says no, or after
    MAX_REQUESTS.
    """
    outcomes: dict[int, Outcome] = {}
    groups = deque(requests)
    stopped: ProviderError | None = None
    asked = 0
    while groups:
        group = groups.popleft()
        if stopped is None and asked and (asked >= MAX_REQUESTS or not has_time()):
            stopped = NotTried()
        if stopped is not None:
            outcomes |= dict.fromkeys(group, stopped)
            continue
        verdict = ask(group)
        asked += 1
        if verdict.is_about_a_recipient and len(group) > 1:
            middle = len(group) // 2
            groups += [group[:middle], group[middle:]]
            continue
        outcomes |= dict.fromkeys(group, verdict.outcome)
        stopped = _end(verdict.outcome)
    return outcomes


def _end(outcome: Outcome) -> ProviderError | None:
    """Return the error that holds for all that is still to be asked for; None to go on."""
    if isinstance(outcome, ChannelUnavailable):
        return outcome
    if isinstance(outcome, TransientError) and not outcome.ambiguous:
        return outcome
    return None
