"""Outcomes that are the same for every provider: what a network does to a good answer."""

from collections.abc import Sequence

from ..outcomes import Outcome, Step
from ..replies import Manner, Reply

BAD_GATEWAY = Outcome(
    name="bad-gateway",
    says="502 with a page of HTML, as from a proxy in between.",
    status=502,
    accepted=False,
)
REDIRECT = Outcome(
    name="redirect",
    says="302 to another host. A client that follows it gives its key away.",
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
_ELSEWHERE = "http://elsewhere.invalid"


def bad_gateway() -> Reply:
    """Return the answer of a proxy that cannot reach the provider."""
    return Reply(status=BAD_GATEWAY.status, body=_PAGE, headers={"Content-Type": "text/html"})


def redirect(path: str) -> Reply:
    """Return a redirect to a name that never has an address, so that no key gets anywhere."""
    return Reply(status=REDIRECT.status, headers={"Location": _ELSEWHERE + path})


def rows(status: int, *, steps: Sequence[Step]) -> tuple[Outcome, ...]:
    """Return what may befall an acceptance with this status and these events."""
    reported = "; the events come twenty seconds later" if steps else ""

    def row(name: str, says: str, manner: Manner, *, late: bool = False) -> Outcome:
        return Outcome(
            name=name, says=says, status=status, manner=manner, steps=tuple(steps), late=late
        )

    return (
        row("timeout", f"Accepted but never answered{reported}.", Manner.STALLED, late=True),
        Outcome(
            name="timeout-lost",
            says="Never answered, and the message is lost.",
            status=status,
            manner=Manner.STALLED,
            accepted=False,
        ),
        row("reset", "Accepted, then the connection is reset instead of an answer.", Manner.RESET),
        row(
            "truncated",
            f"Accepted, but the {status} is cut off before its end.",
            Manner.TRUNCATED,
        ),
        row("dripping", f"Accepted, but the {status} comes one byte a second.", Manner.DRIPPING),
        row("slow", "Accepted after two seconds.", Manner.SLOW),
    )
