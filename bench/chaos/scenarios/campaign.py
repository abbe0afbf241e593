"""Codes that people wait for, behind a campaign."""

import time
from statistics import quantiles

from notifyproject.settings.base import urgent_queue_names

from .. import bodies
from ..bodies import Body
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import acceptances, waits
from ..load import Load
from ..scenario import Scenario
from ..stand import Stand, standing

AT_ONCE = 1_000
FINAL_SECONDS = 3_600.0
WARM_UP_SECONDS = 5.0


def codes_behind_a_campaign(*, campaign: int, codes: int, rate: float) -> Findings:
    """Accept a campaign, and while it goes out, login codes one by one."""
    limits = {"BULK_PENDING_LIMIT": str(10 * campaign)}
    with standing(webhooks=False, environment=limits) as stand:
        stand.start(stand.web(), stand.beat())
        accepted = _campaign(stand, campaign)
        urgent = ",".join(urgent_queue_names())
        stand.start(stand.worker(), stand.worker("urgent", queues=urgent))
        time.sleep(WARM_UP_SECONDS)
        load = Load(stand.client, count=codes, rate=rate, body=_code, name="code")
        load.start()
        load.finish()
        waiting = stand.open_count()
        stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        told = acceptances(evidence)
        ours = {
            one.notification_id: told[one.notification_id]
            for one in evidence.answers
            if one.notification_id is not None and one.key.startswith("code-")
        }
        found = waits(evidence, ours)
        return conclude(
            evidence,
            Bound(name="mails of the campaign", value=accepted, least=campaign),
            Bound(name="of them still waiting when the last code was sent", value=waiting, least=1),
            Bound(name="codes that reached the provider", value=len(found), least=codes),
            Bound(name="seconds from accepted to the provider, p50", value=_share(found, 50)),
            Bound(name="… p99", value=_share(found, 99), most=3),
        )


def _campaign(stand: Stand, count: int) -> int:
    """Send a campaign in bulk; return how many were accepted."""
    accepted = 0
    for start in range(0, count, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, count))
        some = [_advertisement(number) for number in numbers]
        answers = stand.client.send_many(some, key=f"campaign-{start}")
        accepted += sum(one.is_accepted for one in answers)
    return accepted


def _advertisement(number: int) -> Body:
    return bodies.mail(number, priority="low")


def _code(number: int) -> Body:
    return {
        "type": "mfa_code",
        "user_id": f"login-{number}",
        "recipient": {"email": f"login+{number}@example.com"},
        "channels": ["email"],
        "data": {"code": f"{number:06d}", "expires_in": 5},
    }


def _share(found: list[float], percent: int) -> float | None:
    return quantiles(found, n=100)[percent - 1] if len(found) > 1 else None


CODES_BEHIND_A_CAMPAIGN = Scenario(
    number=19,
    injects="a campaign of 100,000 mails, then login codes",
    shows="a code reaches the provider within 3 s (p99)",
    run=codes_behind_a_campaign,
    full={"campaign": 100_000, "codes": 600, "rate": 5},
    short={"campaign": 3_000, "codes": 50, "rate": 5},
)
