"""Email services: answers that are lost at an idempotent one, and failover from one to another."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sandbox import assembly
from sandbox.credentials import AwsAccount
from sandbox.log import REQUESTS_FILE, Record, read_records

from ...processes import wait_until
from ..analysis import final_statuses
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import NEWS, Body, mail_body
from .failover import given_up

LOST = ("reset", "truncated", "timeout")
"""Recipients whose mail is accepted, and whose answer is a reset connection, cut off, or none."""
EVERY = 5
"""One answer of so many is lost."""
UNANSWERED_EVERY = 20
"""Every so many mails, whichever service gets it takes it without an answer. They are of a type
that allows no copy, so that no other service may get them."""
MAX_REFUSED = 200
"""Requests of a worker that are in flight when the circuit opens, and probes. It opens once half of
the outcomes of a minute are failures."""
FINAL_SECONDS = 1_200.0
NO_LIMITS = "resend:0,ses:0,postmark:0"
UNKNOWN = "unknown"


@scenario(
    38,
    injects="a fifth of the answers of Resend are lost after it accepted, and all of its webhooks",
    shows="P1, P2: the same request with the same key is sent again; nobody gets two",
    full={"count": 2_000, "rate": 10.0},
    short={"count": 60, "rate": 10.0},
)
def lost_answers_of_resend(*, count: int, rate: float) -> Findings:
    """Send mails by a provider that takes requests with one key as one."""
    with run_installation(webhooks=False) as installation:
        variables = _accounts(installation, "resend")
        installation.start(*_programs(installation, 2), **variables)
        installation.start_load(count=count, rate=rate, body=_lossy_body).finish()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        records = _messages(installation)
        lost = sum(record.outcome in LOST for record in records)
        keys = Counter(record.headers.get("idempotency-key") for record in records)
        copies = Counter(request.notification_id for request in evidence.requests)
        ends = final_statuses(evidence)
        return make_findings(
            evidence,
            at_least("answers that were lost", lost, count // EVERY),
            at_least("requests with a known key", _repeated(records), lost),
            at_most("requests with one key", max(keys.values(), default=None), 3),
            Bound("most mails to one recipient", max(copies.values(), default=None), 1, 1),
            Bound("mails that were sent", ends.get("sent", 0), count, count),
            at_most("mails that ended without a known outcome", ends.get(UNKNOWN, 0), 0),
            given_up(evidence),
            copies="none",
        )


@scenario(
    39,
    injects="SES fails while thousands of mails wait, of which some are unanswered",
    shows="P1, P2: another service takes over; none is sent twice, or again after no answer",
    full={"count": 5_000, "before": 500, "workers": 2},
    short={"count": 200, "before": 60, "workers": 1},
)
def failover_to_another_service(*, count: int, before: int, workers: int) -> Findings:
    """Let SES accept some mails, and then refuse all others with a 503."""
    with run_installation() as installation:
        variables = _accounts(installation, "ses", "postmark")
        web, *others = _programs(installation, workers)
        installation.start(web, **variables)
        installation.client.send_in_bulk(before, body=_body, name="before")
        installation.start(*others, **variables)
        wait_until(
            lambda: _accepted(_messages(installation), "ses") >= before // 2,
            timeout=FINAL_SECONDS,
            what="mails by SES",
        )
        installation.script_outcome("ses:*", "unavailable")
        installation.client.send_in_bulk(count, body=_body, name="after")
        began = time.monotonic()
        installation.wait_final(timeout=FINAL_SECONDS)
        seconds = time.monotonic() - began
        # The receipts of the last mails.
        time.sleep(10)
        evidence = installation.collect_evidence()
        records = _messages(installation)
        refused = sum(record.provider == "ses" and not record.accepted for record in records)
        copies = Counter(request.notification_id for request in evidence.requests)
        accepted = _accepted(records, "ses")
        ends = final_statuses(evidence)
        undelivered = sum(ends.values()) - ends.get("delivered", 0)
        return make_findings(
            evidence,
            at_least("mails that SES accepted", accepted, before // 2),
            at_least("mails that Postmark accepted", _accepted(records, "postmark"), count),
            at_most("requests that SES refused", refused, accepted + workers * MAX_REFUSED),
            at_most("most requests for one mail", max(copies.values(), default=None), 3),
            at_most("mails that went elsewhere after no answer", len(_left(records)), 0),
            at_most("mails that aren't delivered", undelivered, 0),
            Bound("seconds until the last was sent", seconds),
            copies="none",
        )


def _accounts(installation: Installation, *names: str) -> dict[str, str]:
    """Return the variables of email services that are the sandbox's, in the order of failover."""
    url = installation.environment["SANDBOX_URL"]
    mail = assembly.create_secrets(installation.folder / "sandbox", url=url).mail
    aws = AwsAccount()
    known = {
        "resend": {"API_KEY": "re_chaos-key", "URL": f"{url}/resend"},
        "postmark": {
            "SERVER_TOKEN": "chaos-token",
            "WEBHOOK_SECRET": mail.webhook_secret,
            "URL": f"{url}/postmark",
        },
        "ses": {
            "ACCESS_KEY_ID": aws.access_key_id,
            "SECRET_ACCESS_KEY": aws.secret_access_key,
            "REGION": aws.region,
            "CONFIGURATION_SET": aws.configuration_set,
            "TOPICS": aws.topic,
            "URL": url,
            "SNS_URL": f"{url}/sns",
        },
    }
    return {
        "EMAIL_PROVIDER": ",".join(names),
        "PROVIDER_MAX_PER_SECOND": NO_LIMITS,
        **{
            f"{name.upper()}_{setting}": text
            for name in names
            for setting, text in known[name].items()
        },
    }


def _programs(installation: Installation, workers: int) -> Sequence[Any]:
    return [installation.web(), *installation.workers(workers), installation.beat()]


def _lossy_body(number: int) -> Body:
    to = LOST[number // EVERY % len(LOST)] if number % EVERY == 0 else "user"
    return mail_body(number, to=to)


def _body(number: int) -> Body:
    if number % UNANSWERED_EVERY < UNANSWERED_EVERY - 1:
        return mail_body(number)
    to = LOST[number // UNANSWERED_EVERY % len(LOST)]
    return mail_body(number, to=to, type="marketing", content=NEWS, data={}, priority="high")


def _messages(installation: Installation) -> list[Record]:
    path = installation.folder / "sandbox" / REQUESTS_FILE
    return [record for record in read_records(path) if record.is_message]


def _accepted(records: Sequence[Record], provider: str) -> int:
    return sum(record.provider == provider and record.accepted for record in records)


def _repeated(records: Sequence[Record]) -> int:
    return sum(record.outcome == "repeated" for record in records)


def _left(records: Sequence[Record]) -> list[str]:
    """Return the mails that a service was asked to send after another gave no answer, by ID."""
    unanswered, left = dict[str, str](), list[str]()
    for record in records:
        for reference in record.references:
            notification_id = reference.partition(".")[0]
            if unanswered.get(notification_id, record.provider) != record.provider:
                left.append(notification_id)
            if record.accepted and record.outcome in LOST:
                unanswered.setdefault(notification_id, record.provider)
    return left
