"""One account of a provider takes the place of another under load, by environment alone."""

import time
from dataclasses import replace
from datetime import UTC, datetime

from notifyproject.stack import servers
from notifyproject.stack.servers import HOST
from sandbox import assembly

from ..analysis import final_statuses
from ..evidence import Evidence
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import (
    PYTHON,
    Installation,
    latency_options,
    provider_requests,
    run_installation,
)
from ..load import NEWS, Body, mail_body
from .failover import given_up

FIRST, SUCCESSOR = "first", "successor"
FINAL_SECONDS = 600.0
UNANSWERED_EVERY = 20
"""Every so many mails, the provider takes one without an answer, and reports it 20 s later. It is
of a type that allows no copy, so that none may be sent by the other account."""


@scenario(
    30,
    injects="another account of the provider takes the place of the first under load, program by "
    "program, while mails are unanswered",
    shows="P1, P2: nothing is lost or doubled, and receipts of the first account take effect",
    full={"rate": 20.0, "between": 30.0, "workers": 3},
    short={"rate": 8.0, "between": 6.0, "workers": 2},
)
def exchanged_accounts(*, rate: float, between: float, workers: int) -> Findings:
    """Restart web, beat, and each worker with the other account in the list."""
    with run_installation(webhooks=False) as installation:
        accounts = _start_account(installation, FIRST) | _start_account(installation, SUCCESSOR)
        web, beat = installation.web(), installation.beat()
        programs = [web, *installation.workers(workers), beat]
        installation.start(*programs, EMAIL_PROVIDER=FIRST, **accounts)
        load = installation.start_load(count=1_000_000, rate=rate, body=_body)
        time.sleep(between)
        began = datetime.now(UTC)
        for program in programs:
            program.terminate()
            installation.start(program, EMAIL_PROVIDER=SUCCESSOR, **accounts)
            time.sleep(between)
        ended = datetime.now(UTC)
        time.sleep(between)
        load.stop()
        installation.wait_final(timeout=FINAL_SECONDS)
        # The reports of the last mails.
        time.sleep(between)
        log = installation.database["webhook_log"]
        late = log.count_documents({"provider": FIRST, "received_at": {"$gt": began}})
        own = log.count_documents({"provider": SUCCESSOR})
        first = provider_requests(installation.folder / FIRST)
        second = provider_requests(installation.folder / SUCCESSOR)
        evidence = installation.collect_evidence()
        requests = tuple(sorted([*first, *second], key=lambda request: request.at))
        evidence = replace(evidence, requests=requests)
        return make_findings(
            evidence,
            at_least("requests to the first account", len(first), 1),
            at_least("requests to its successor", len(second), 1),
            at_most(
                "requests to the first account after the exchange",
                sum(request.at > ended for request in first),
                0,
            ),
            at_least("webhooks of the first account since the exchange began", late, 1),
            at_least("webhooks of its successor", own, 1),
            at_most("mails that aren't delivered", _undelivered(evidence), 0),
            given_up(evidence),
            copies="none",
        )


def _start_account(installation: Installation, name: str) -> dict[str, str]:
    """Start a provider that knows one account. Return the variables that declare it."""
    url, folder = f"http://{HOST}:{servers.free_port()}", installation.folder / name
    secrets = assembly.create_secrets(folder, url=url)
    receiver = f"{installation.url}/webhooks/sendgrid/{name}"
    command = [PYTHON, "-m", "sandbox", "--port", url.rpartition(":")[2], "--data", str(folder)]
    command += ["--webhook-url", receiver, *latency_options()]
    installation.start(installation.program(name, command, ready_text="sandbox: http"))
    variables = {
        "KIND": "sendgrid",
        "API_KEY": f"SG.of-the-{name}",
        "URL": url,
        "WEBHOOK_PUBLIC_KEY": secrets.public_key,
    }
    return {f"PROVIDER_{name.upper()}_{setting}": text for setting, text in variables.items()}


def _body(number: int) -> Body:
    if number % UNANSWERED_EVERY < UNANSWERED_EVERY - 1:
        return mail_body(number, priority="critical")
    # A type that allows no copy, and no critical priority.
    return mail_body(number, to="timeout", type="marketing", content=NEWS, data={}, priority="high")


def _undelivered(evidence: Evidence) -> int:
    ends = final_statuses(evidence)
    return sum(ends.values()) - ends.get("delivered", 0)
