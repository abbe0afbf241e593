"""Codes that people wait for, behind a campaign."""

import time

from notifyproject.settings.base import urgent_queue_names

from ...figures import percentile
from .. import bodies
from ..bodies import Body
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import waits_since_accepted
from ..load import Load
from ..scenario import Scenario
from ..stand import run_installation

FINAL_SECONDS = 3_600.0
WARM_UP_SECONDS = 5.0


def codes_behind_a_campaign(*, campaign: int, codes: int, rate: float) -> Findings:
    """Accept a campaign, and while it goes out, login codes one by one."""
    limits = {"BULK_PENDING_LIMIT": str(10 * campaign)}
    with run_installation(webhooks=False, environment=limits) as installation:
        installation.start(installation.web(), installation.beat())
        accepted = installation.client.send_in_bulk(campaign, body=_advertisement, name="campaign")
        urgent = ",".join(urgent_queue_names())
        installation.start(installation.worker(), installation.worker("urgent", queues=urgent))
        time.sleep(WARM_UP_SECONDS)
        load = Load(installation.client, count=codes, rate=rate, body=_code, name="code")
        load.start()
        load.finish()
        waiting = installation.open_count()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        found = waits_since_accepted(evidence, load.name)
        return make_findings(
            evidence,
            Bound(name="mails of the campaign", value=accepted, minimum=campaign),
            Bound(
                name="of them still waiting when the last code was sent", value=waiting, minimum=1
            ),
            Bound(name="codes that reached the provider", value=len(found), minimum=codes),
            Bound(name="seconds from accepted to the provider, p50", value=percentile(found, 50)),
            Bound(name="… p99", value=percentile(found, 99), maximum=3),
        )


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


CODES_BEHIND_A_CAMPAIGN = Scenario(
    number=19,
    injects="a campaign of 100,000 mails, then login codes",
    shows="a code reaches the provider within 3 s (p99)",
    run=codes_behind_a_campaign,
    full={"campaign": 100_000, "codes": 600, "rate": 5},
    short={"campaign": 3_000, "codes": 50, "rate": 5},
)
