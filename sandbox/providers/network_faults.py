"""Outcomes that all providers share: network faults, and answers of a faulty proxy."""

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


def proxy_response(outcome: Outcome, path: str) -> ProviderResponse | None:
    """Return a proxy's answer if the outcome is one (502 or a redirect); else None.

    The redirect goes to a host that doesn't resolve, so that a client leaks no key.
    """
    if outcome.name == BAD_GATEWAY.name:
        headers = {"Content-Type": "text/html"}
        return ProviderResponse(status=BAD_GATEWAY.status, body=_PAGE, headers=headers)
    if outcome.name == REDIRECT.name:
        headers = {"Location": f"http://elsewhere.invalid{path}"}
        return ProviderResponse(status=REDIRECT.status, headers=headers)
    return None


def fault_outcomes(status: int, *steps: Step) -> tuple[Outcome, ...]:
    """Return the network-fault outcomes of a provider that accepts with this status and events."""
    late = "; the events come twenty seconds later" if steps else ""
    stalled = ResponseMode.STALLED
    descriptions = {
        ResponseMode.RESET: "Accepted, then the connection is reset instead of an answer.",
        ResponseMode.TRUNCATED: f"Accepted, but the {status} is cut off before its end.",
        ResponseMode.DRIPPING: f"Accepted, but the {status} comes one byte a second.",
        ResponseMode.SLOW: "Accepted after two seconds.",
    }
    timeout = accepted(
        "timeout", f"Accepted but never answered{late}.", *steps, status=status, mode=stalled
    )
    return (
        replace(timeout, has_late_events=True),
        refused("timeout-lost", status, "Never answered, and the message is lost.", mode=stalled),
        *(
            accepted(mode.value, text, *steps, status=status, mode=mode)
            for mode, text in descriptions.items()
        ),
    )
