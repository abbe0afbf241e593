"""The choice of an outcome: by a script first, then by the recipient itself (magic recipients)."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from .outcomes import Outcome, Outcomes

EVERYBODY = "*"
MAX_REMEMBERED = 10_000


def everybody_match(provider: str) -> str:
    """Return the ``match`` of a script for all recipients of one provider, such as ``fcm:*``."""
    return f"{provider}:{EVERYBODY}"


def canonical(recipient: str) -> str:
    """Normalize a recipient for comparison: lower case, without the + of a phone number."""
    text = recipient.strip().lower()
    number = text.removeprefix("+")
    return number if number.isdigit() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """A script: the outcome of all messages to matching recipients."""

    match: str
    """A canonical recipient, ``*`` for all, or ``fcm:*`` for all of one provider."""
    outcome: str
    times: int | None
    """How many more messages the script applies to; None: all."""


class Behaviours:
    """The scripted outcomes by recipient, and the failures of those that fail only at first."""

    def __init__(self) -> None:
        self.scripts: dict[str, Behaviour] = {}
        """By match."""
        self.recent: dict[str, deque[float]] = {}
        """Times of requests that a provider counts, in seconds since 1970, by its own keys."""
        self._failures: OrderedDict[str, int] = OrderedDict()

    def clear(self) -> None:
        """Remove all scripts and counts."""
        self.scripts.clear()
        self.recent.clear()
        self._failures.clear()

    def choose_outcome(
        self,
        recipient: str,
        *,
        provider: str,
        outcomes: Outcomes,
        magic: Callable[[str], str],
        is_message: bool = True,
    ) -> Outcome:
        """Return the outcome of one message to a recipient.

        ``magic`` returns the name of the outcome that a magic recipient chooses. Requests other
        than messages, such as authentication, ignore the script for ``*``.
        """
        recipient = canonical(recipient)
        outcome = (
            self._scripted(recipient, outcomes)
            or self._scripted(everybody_match(provider), outcomes)
            or (self._scripted(EVERYBODY, outcomes) if is_message else None)
            or outcomes.find(magic(recipient))
            or outcomes.default
        )
        if not outcome.initial_failures:
            return outcome
        key = f"{provider} {outcome.name} {recipient}"
        failures = self._failures.pop(key, 0)
        if failures >= outcome.initial_failures:
            return outcomes.default
        self._failures[key] = failures + 1
        if len(self._failures) > MAX_REMEMBERED:
            self._failures.popitem(last=False)
        return outcome

    def _scripted(self, match: str, outcomes: Outcomes) -> Outcome | None:
        script = self.scripts.get(match)
        outcome = outcomes.find(script.outcome) if script else None
        if script is None or outcome is None:
            return None
        if script.times is not None:
            if script.times <= 1:
                del self.scripts[match]
            else:
                self.scripts[match] = replace(script, times=script.times - 1)
        return outcome
