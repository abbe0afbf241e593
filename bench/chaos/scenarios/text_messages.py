"""Text messages: lost answers and callbacks, inflated traffic, and opt-outs in between."""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import phonenumbers
import urllib3

from sandbox.log import REQUESTS_FILE, read_records

from ...processes import wait_until
from ..analysis import final_statuses
from ..evidence import Answer, Evidence
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import (
    SCOPES,
    Installation,
    run_installation,
    run_set_up,
    set_up_commands,
)
from ..load import Client

LOST = ("900810", "900811")
"""Ends of numbers whose message is accepted, and whose answer is a reset connection or cut off."""
ARRIVING = "900001"
EVERY = 10
"""One answer of so many is lost."""
REPEATING_SECONDS = 200
"""Time in which the last code is sent three times: waits for receipts, and delays."""
FINAL_SECONDS = 600.0
BRITISH = 60
"""Numbers from +44 7710 on. After 7769, some are of Guernsey, to which nothing may be sent."""
NOWHERE = "http://127.0.0.1:9"
"""Where nobody listens: callbacks to it are lost."""
DELIVERED = "delivered"
REPEATED_TYPE, ENDED_TYPE = "mfa_code", "marketing"
"""A type of codes repeats an unknown outcome, and the other one ends with it."""
ABROAD = 100
ALERT_SECONDS = 75.0
"""Alerts are looked for once a minute."""
LATE_SECONDS = 1.0


@scenario(
    34,
    injects="a tenth of the answers of the SMS provider are lost, and its callbacks arrive",
    shows="P1, P2: the reference in the callback resolves each attempt",
    full={"count": 3_000, "rate": 12.0},
    short={"count": 100, "rate": 10.0},
)
def lost_answers(*, count: int, rate: float) -> Findings:
    """Send codes by SMS, of which a tenth are accepted without an answer."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        load = installation.start_load(count=count, rate=rate, body=_body)
        load.finish()
        installation.wait_final(timeout=FINAL_SECONDS)
        notifications = installation.database["notifications"]
        wait_until(
            lambda: not notifications.count_documents({"delivery.status": {"$ne": DELIVERED}}),
            timeout=FINAL_SECONDS,
            what="callbacks",
        )
        evidence = installation.collect_evidence()
        unresolved = sum(document.deliveries != {"sms": DELIVERED} for document in evidence.stored)
        return make_findings(
            evidence,
            at_most("messages that were sent again", _repeated(evidence), 0),
            at_most("deliveries that a callback left unresolved", unresolved, 0),
            at_least("answers that were lost", _lost(installation), count // EVERY),
        )


@scenario(
    35,
    injects="a tenth of the answers of the SMS provider are lost, and all of its callbacks",
    shows="P1, P2: the type's policy decides",
    full={"count": 1_000, "rate": 10.0},
    short={"count": 60, "rate": 10.0},
)
def lost_callbacks(*, count: int, rate: float) -> Findings:
    """Send codes, and texts of a type that is never repeated, without callbacks.

    Other texts follow while codes are sent again. If those were alone, all answers would be lost,
    and codes would expire while the circuit is open.
    """
    with run_installation(environment={"PUBLIC_URL": NOWHERE}) as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        load = installation.start_load(count=count, rate=rate, body=_either_body)
        load.finish()
        others = int(rate * REPEATING_SECONDS)
        installation.start_load(count=others, rate=rate, body=_arriving, name="others").finish()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        types = {
            str(document["_id"]): document["type"]
            for document in installation.database["notifications"].find({}, {"type": 1})
        }
        copies = Counter(request.notification_id for request in evidence.requests)
        repeated = Counter(types[name] for name, number in copies.items() if number > 1)
        ends = final_statuses(evidence)
        neither = count + others - ends.get("sent", 0) - ends.get("failed", 0)
        lost = _lost(installation)
        return make_findings(
            evidence,
            at_least("codes that were sent again", repeated[REPEATED_TYPE], 1),
            at_most("texts of the other type that were sent again", repeated[ENDED_TYPE], 0),
            at_most("messages neither sent nor failed", neither, 0),
            at_least("answers that were lost", lost, count // EVERY),
            copies="any",
        )


@scenario(
    36,
    injects="one client asks for codes to many countries, as a fraudster would",
    shows="P2: the cap abroad, the alert, and no other client's codes are late",
    full={"count": 2_000, "countries": 50, "rate": 40.0},
    short={"count": 200, "countries": 20, "rate": 20.0},
)
def inflated_traffic(*, count: int, countries: int, rate: float) -> Findings:
    """Ask for codes abroad, while another client asks for codes at home."""
    abroad = _numbers_abroad(countries)
    environment = {
        "SMS_COUNTRIES": ",".join(["GB", *abroad]),
        "SMS_DAILY_UNITS_ABROAD": str(ABROAD),
    }
    with run_installation(environment=environment) as installation:
        other = _other_client(installation)
        installation.start(installation.web(), installation.worker(), installation.beat())
        numbers = list(abroad.values())
        quiet = _send_codes(other, name="quiet", seconds=count / rate / 2)
        began = time.monotonic()
        load = installation.start_load(
            count=count, rate=rate, body=lambda n: _code(n, numbers[n % len(numbers)])
        )
        busy = _send_codes(other, name="busy", seconds=count / rate)
        load.finish()
        incidents = installation.database["incidents"]
        kinds = {"kind": {"$in": ["daily_units", "pumping"]}}
        wait_until(
            lambda: incidents.count_documents(kinds) > 0, timeout=FINAL_SECONDS, what="the alert"
        )
        alert = time.monotonic() - began
        evidence = installation.finish(timeout=FINAL_SECONDS)
        ours = {answer.notification_id for answer in (*quiet, *busy)}
        sent = [request for request in evidence.requests if request.notification_id not in ours]
        sent_at = {request.notification_id: request.at for request in evidence.requests}
        return make_findings(
            replace(evidence, answers=(*evidence.answers, *other.answers)),
            at_most("parts that were sent abroad", len(sent), ABROAD),
            at_least("codes that were held", count - len(sent), count - ABROAD),
            at_most("seconds until the alert", alert, count / rate + ALERT_SECONDS),
            at_most(
                "seconds by which the other client's p99 grew",
                _p99(busy, sent_at) - _p99(quiet, sent_at),
                1.0,
            ),
        )


@scenario(
    37,
    injects="people write STOP while a worker holds their text and waits for the rate",
    shows="P3: no text to who has opted out",
    full={"count": 1_500, "rate": 15, "stops": 300},
    short={"count": 150, "rate": 15, "stops": 30},
)
def stop_in_between(*, count: int, rate: int, stops: int) -> Findings:
    """Send codes at a low rate, and let people opt out before theirs is sent."""
    environment = {"PROVIDER_MAX_PER_SECOND": f"whatsapp:0,twilio:{rate}"}
    with run_installation(environment=environment) as installation:
        from domain.channels import Channel
        from recipients.models import SuppressionReason
        from recipients.suppressions import suppression_id

        installation.start(installation.web(), installation.worker(), installation.beat())
        numbers = [f"+4477{10_000_000 + n}" for n in range(count)]
        installation.client.send_in_bulk(
            count, body=lambda number: _code(number, numbers[number]), name="codes"
        )
        committed: dict[str, datetime] = {}
        for number in random.Random(1).sample(numbers, stops):
            _write_stop(installation, number)
            name = suppression_id(Channel.SMS.value, number, SuppressionReason.UNSUBSCRIBED)
            _await_document(installation, "suppressions", name)
            committed[number] = datetime.now(UTC)
            time.sleep(count / rate / stops / 2)
        evidence = installation.finish(timeout=FINAL_SECONDS)
        late = [
            (record.time - at).total_seconds()
            for record in read_records(installation.folder / "sandbox" / REQUESTS_FILE)
            if record.is_message and (at := committed.get(record.json()["To"])) is not None
        ]
        suppressed = sum("suppressed" in d.deliveries.values() for d in evidence.stored)
        return make_findings(
            evidence,
            at_most("latest text after an opt-out, seconds", max([0.0, *late]), LATE_SECONDS),
            at_least("texts that an opt-out stopped", suppressed, stops // 10),
        )


def _body(number: int) -> dict[str, Any]:
    return _code(number, _number(number))


def _either_body(number: int) -> dict[str, Any]:
    """Return a code or a text of the other type: both with lost answers."""
    body = _code(number, _number(number))
    if number // EVERY % 4 < 2:
        return body
    text = {"body": "News. Reply STOP to opt out."}
    return {**body, "type": ENDED_TYPE, "priority": "high", "data": {}, "content": text}


def _arriving(number: int) -> dict[str, Any]:
    return _code(number, f"+4477{10 + number % BRITISH}{ARRIVING}")


def _number(number: int) -> str:
    end = LOST[number // EVERY % len(LOST)] if number % EVERY == 0 else ARRIVING
    return f"+4477{10 + number % BRITISH}{end}"


def _code(number: int, phone: str) -> dict[str, Any]:
    return {
        "type": REPEATED_TYPE,
        "recipient": {"phone": phone},
        "channels": ["sms"],
        "data": {"code": f"{number % 10**6:06}", "expires_in": 5},
    }


def _repeated(evidence: Evidence) -> int:
    copies = Counter(request.notification_id for request in evidence.requests)
    return sum(number > 1 for number in copies.values())


def _lost(installation: Installation) -> int:
    records = read_records(installation.folder / "sandbox" / REQUESTS_FILE)
    return sum(record.outcome in ("reset", "truncated") for record in records)


def _numbers_abroad(countries: int) -> dict[str, str]:
    """Return an example of a mobile number by country."""
    found: dict[str, str] = {}
    for region in sorted(phonenumbers.SUPPORTED_REGIONS - {"GB"}):
        example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        # Countries that share a calling code aren't told apart by an example.
        if example is not None and phonenumbers.region_code_for_number(example) == region:
            found[region] = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.E164)
        if len(found) == countries:
            break
    return found


def _other_client(installation: Installation) -> Client:
    command = set_up_commands(SCOPES, client="other")["client"]
    key = run_set_up(installation.program("other", command))
    return Client(url=installation.url, key=key)


def _send_codes(client: Client, *, name: str, seconds: float) -> list[Answer]:
    """Send a code to a person at home every half second, for a time."""
    answers, ends_at = list[Answer](), time.monotonic() + seconds
    while time.monotonic() < ends_at:
        number = len(answers)
        body = _code(number, f"+4477{20_000_000 + number}")
        answers.append(client.send(body, key=f"{name}-{number}"))
        time.sleep(0.5)
    return answers


def _p99(answers: Sequence[Answer], sent_at: Mapping[str, datetime]) -> float:
    """Return how long nearly all codes took from their acceptance to the provider, in seconds."""
    waits = sorted(
        (sent_at[answer.accepted_id()] - answer.at).total_seconds()
        if answer.accepted_id() in sent_at
        else FINAL_SECONDS
        for answer in answers
    )
    return waits[min(len(waits) * 99 // 100, len(waits) - 1)]


def _write_stop(installation: Installation, number: str) -> None:
    answer = urllib3.request(
        "POST",
        f"{installation.environment['SANDBOX_URL']}/_sandbox/twilio/written",
        json={"from": number, "text": "STOP"},
        timeout=10,
    )
    if answer.status >= 300:
        raise RuntimeError(f"the sandbox refused a message: {answer.data!r}")


def _await_document(installation: Installation, collection: str, name: str) -> None:
    stored = installation.database[collection]
    wait_until(lambda: stored.count_documents({"_id": name}) > 0, timeout=FINAL_SECONDS, what=name)
