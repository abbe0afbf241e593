"""Outcomes of every provider: network faults."""

from collections.abc import Sequence

from ..outcomes import Outcome, Step
from ..responses import ProviderResponse, ResponseMode

BAD_GATEWAY = Outcome(
    name="bad-gateway",
    description="502 with a page of HTML, as from a proxy in between.",
    status=502,
    accepted=False,
)
REDIRECT = Outcome(
    name="redirect",
    description="302 to another host. A client that follows it gives its key away.",
    status=302,
    accepted=False,
)
_PAGE = b"""<html>
<head><title>502 Bad Gateway</title></head>
<body>
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx</center>
</body>
</html>
"""
_REDIRECT_HOST = "http://elsewhere.invalid"


def bad_gateway() -> ProviderResponse:
    """Return a reverse proxy's answer when the provider is down."""
    return ProviderResponse(
        status=BAD_GATEWAY.status, body=_PAGE, headers={"Content-Type": "text/html"}
    )


def redirect(path: str) -> ProviderResponse:
    """Return a redirect to a name without an address, so that no key leaks."""
    return ProviderResponse(status=REDIRECT.status, headers={"Location": _REDIRECT_HOST + path})


def fault_outcomes(status: int, *, steps: Sequence[Step]) -> tuple[Outcome, ...]:
    """Return the network faults of an acceptance with this status and these events."""
    events_text = "; the events come twenty seconds later" if steps else ""

    def outcome(
        name: str, description: str, mode: ResponseMode, *, has_late_events: bool = False
    ) -> Outcome:
        return Outcome(
            name=name,
            description=description,
            status=status,
            mode=mode,
            steps=tuple(steps),
            has_late_events=has_late_events,
        )

    return (
        outcome(
            "timeout",
            f"Accepted but never answered{events_text}.",
            ResponseMode.STALLED,
            has_late_events=True,
        ),
        Outcome(
            name="timeout-lost",
            description="Never answered, and the message is lost.",
            status=status,
            mode=ResponseMode.STALLED,
            accepted=False,
        ),
        outcome(
            "reset",
            "Accepted, then the connection is reset instead of an answer.",
            ResponseMode.RESET,
        ),
        outcome(
            "truncated",
            f"Accepted, but the {status} is cut off before its end.",
            ResponseMode.TRUNCATED,
        ),
        outcome(
            "dripping",
            f"Accepted, but the {status} comes one byte a second.",
            ResponseMode.DRIPPING,
        ),
        outcome("slow", "Accepted after two seconds.", ResponseMode.SLOW),
    )
