"""Login codes are accepted behind a campaign."""

import time

from ...figures import percentile
from ..analysis import waits_since_accepted
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import run_installation
from ..load import Body, mail_body

FINAL_SECONDS = 3_600.0
WARM_UP_SECONDS = 5.0


@scenario(
    19,
    injects="a campaign of 100,000 mails, then login codes",
    shows="a code reaches the provider within 3 s (p99)",
    full={"campaign": 100_000, "codes": 600, "rate": 5},
    short={"campaign": 3_000, "codes": 50, "rate": 5},
)
def codes_behind_a_campaign(*, campaign: int, codes: int, rate: float) -> Findings:
    """Accept a campaign and, while it is sent, login codes one by one."""
    limits = {"BULK_PENDING_LIMIT": str(10 * campaign)}
    with run_installation(webhooks=False, environment=limits) as installation:
        installation.start(installation.web(), installation.beat())
        accepted = installation.client.send_in_bulk(
            campaign, body=lambda number: mail_body(number, priority="low"), name="campaign"
        )
        installation.start(installation.worker(), installation.worker("urgent", is_urgent=True))
        time.sleep(WARM_UP_SECONDS)
        installation.start_load(count=codes, rate=rate, body=_code, name="code").finish()
        waiting = installation.open_count()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        found = waits_since_accepted(evidence, "code")
        return make_findings(
            evidence,
            at_least("mails of the campaign", accepted, campaign),
            at_least("of them still open when the last code was sent", waiting, 1),
            at_least("codes that reached the provider", len(found), codes),
            Bound("seconds from accepted to the provider, p50", percentile(found, 50)),
            at_most("… p99", percentile(found, 99), 3),
        )


def _code(number: int) -> Body:
    return {
        "type": "mfa_code",
        "user_id": f"login-{number}",
        "recipient": {"email": f"login+{number}@example.com"},
        "channels": ["email"],
        "data": {"code": f"{number:06d}", "expires_in": 5},
    }
