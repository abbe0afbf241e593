"""Outcomes of every provider: network faults."""

from dataclasses import replace

from ..outcomes import Outcome, Step, accepted, refused
from ..responses import ProviderResponse, ResponseMode

BAD_GATEWAY = refused("bad-gateway", 502, "502 with a page of HTML, as from a proxy in between.")
REDIRECT = refused(
    "redirect", 302, "302 to another host. A client that follows it gives its key away."
)
_PAGE = b"""<html>
<head><title>502 Bad Gateway</title></head>
<body>
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx</center>
</body>
</html>
"""


def bad_gateway() -> ProviderResponse:
    """Return a reverse proxy's answer when the provider is down."""
    return ProviderResponse(
        status=BAD_GATEWAY.status, body=_PAGE, headers={"Content-Type": "text/html"}
    )


def redirect(path: str) -> ProviderResponse:
    """Return a redirect to a name without an address, so that no key leaks."""
    location = {"Location": f"http://elsewhere.invalid{path}"}
    return ProviderResponse(status=REDIRECT.status, headers=location)


def fault_outcomes(status: int, *steps: Step) -> tuple[Outcome, ...]:
    """Return the network faults of an acceptance with this status and these events."""
    late = "; the events come twenty seconds later" if steps else ""

    def fault(name: str, description: str, mode: ResponseMode) -> Outcome:
        return replace(accepted(name, status, description, *steps), mode=mode)

    stalled = ResponseMode.STALLED
    lost = refused("timeout-lost", status, "Never answered, and the message is lost.")
    cut = f"Accepted, but the {status} is cut off before its end."
    return (
        replace(
            fault("timeout", f"Accepted but never answered{late}.", stalled), has_late_events=True
        ),
        replace(lost, mode=stalled),
        fault(
            "reset",
            "Accepted, then the connection is reset instead of an answer.",
            ResponseMode.RESET,
        ),
        fault("truncated", cut, ResponseMode.TRUNCATED),
        fault(
            "dripping",
            f"Accepted, but the {status} comes one byte a second.",
            ResponseMode.DRIPPING,
        ),
        fault("slow", "Accepted after two seconds.", ResponseMode.SLOW),
    )
