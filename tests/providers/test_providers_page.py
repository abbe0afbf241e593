"""docs/reference/providers.md matches the code."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from django.conf import settings

from delivery.circuit_breaker import MIN_FAILURES, MIN_PERCENT
from domain.errors import FailureCode, Reach, RecipientAction
from domain.retry import MAX_OUTAGE, OUTAGE_DELAY, UNCOUNTED_MAX_DELAY
from notifications.receipts import processor
from notifications.receipts.processor import DELIVERY_STATUSES
from notifyproject.settings.variables import VARIABLES
from providers import aws_responses, http
from providers.aws_responses import ErrorRule
from providers.aws_sms import responses as aws_sms_responses
from providers.aws_sms import webhooks as aws_sms_webhooks
from providers.aws_sms.webhooks import EventRule
from providers.brevo import kind as brevo
from providers.contract import EFFECTS, AddressEffect, ReceiptKind
from providers.discord import provider as discord
from providers.discovery import SPECS
from providers.email_kinds import EmailKind
from providers.fcm import responses
from providers.fcm.responses import FcmRule
from providers.mail_replies import CODE_SUBJECTS, Subject
from providers.mailgun import kind as mailgun
from providers.mailjet import kind as mailjet
from providers.mailtrap import kind as mailtrap
from providers.postmark import kind as postmark
from providers.resend import kind as resend
from providers.response_rules import FALLBACK_RULES, ResponseKind, ResponseRule
from providers.room_client import RoomRule
from providers.sendgrid import provider as sendgrid_provider
from providers.sendgrid import webhooks
from providers.ses import responses as ses_responses
from providers.ses import webhooks as ses_webhooks
from providers.slack_bot import provider as slack_bot
from providers.slack_webhook import provider as slack_webhook
from providers.smtp import replies as smtp_replies
from providers.smtp.replies import ReplyRule
from providers.sparkpost import kind as sparkpost
from providers.teams import provider as teams
from providers.twilio import responses as twilio_responses
from providers.twilio import webhooks as twilio_webhooks
from providers.twilio.responses import CodeRule as TwilioRule
from providers.twilio.responses import FailureRule
from providers.webhook import provider as webhook
from providers.webpush import responses as webpush_responses
from providers.webpush.responses import WebPushRule
from providers.whatsapp import responses as whatsapp_responses
from providers.whatsapp import webhooks as whatsapp_webhooks
from providers.whatsapp.responses import CodeRule
from recipients.suppressions import MAX_SOFT_BOUNCES
from tests.providers.contract.cases import EXPECTED, UNREACHED, Case
from tests.providers.contract.providers import SUBJECTS
from tests.support.tables import each_case

ANY_STATUS = range(1000)
FIELDS: Mapping[tuple[str, str | None], str] = {
    ("sendgrid", r"from\b.*"): ", about `from`",
    ("Postmark", postmark.ABOUT_RECIPIENT): ", about `To`",
    ("Postmark", postmark.ABOUT_SENDER): ", about `From`",
    ("Resend", resend.ABOUT_RECIPIENT): ", about `to`",
    ("Resend", resend.ABOUT_SENDER): ", about `from` or its domain",
    ("Resend", resend.ABOUT_KEY): ", *API key is invalid*",
    ("Resend", resend.TEST_RECIPIENTS): ", *only send testing emails*",
    ("Brevo", brevo.ABOUT_RECIPIENT): ", *not valid in to*",
    ("Brevo", brevo.ABOUT_SENDER): ", about the *sender*",
    ("Mailjet", mailjet.ABOUT_RECIPIENT): ", about `To`",
    ("Mailjet", mailjet.ABOUT_SENDER): ", about `From`",
    ("SparkPost", sparkpost.SUPPRESSED): ", *suppressed*",
    ("SparkPost", sparkpost.REJECTED): ", its one recipient is counted as rejected",
    ("SparkPost", sparkpost.ABOUT_RECIPIENT): ", about the *recipient*",
    ("Mailtrap", mailtrap.ABOUT_RECIPIENT): ", about `to`",
    ("Mailtrap", mailtrap.ABOUT_SENDER): ", about `from` or its domain",
    ("Mailgun", mailgun.WRONG_PATH): ", *Mailgun Magnificent API*",
    ("Mailgun", mailgun.TEST_RECIPIENTS): ", *for test purposes only*",
    ("Mailgun", mailgun.NOT_ALLOWED): ", *not allowed to send*, or the account is disabled",
    ("Mailgun", mailgun.LIMITED): ", a *limit* of a time is *exceeded* or *reached*",
    ("Mailgun", mailgun.SIZE): ", about the *size*",
    ("Mailgun", mailgun.QUOTA): ", a *plan* or *quota* that is used up",
    ("Mailgun", mailgun.ABOUT_RECIPIENT): ", about `to`",
    ("Mailgun", mailgun.ABOUT_SENDER): ", about `from`",
    ("sendgrid", r"personalizations\.\d+\.to(\.\d+(\.email)?)?"): ", about `personalizations.*.to`",
}
"""The meaning of each rule's pattern."""

DEVICES: Mapping[RecipientAction | None, str] = {
    None: "",
    RecipientAction.DEACTIVATE: ": device disabled",
    RecipientAction.SUSPECT: ": soft bounce, final at the third in a row",
    RecipientAction.UNSUBSCRIBE: ": suppressed for marketing",
}

REACHES: Mapping[Reach | None, str] = {
    Reach.RECIPIENT: "this recipient only",
    Reach.UNCERTAIN: "uncertain reach",
}

CONNECTION_FAILURES = (
    Case.NOBODY_LISTENS,
    Case.NO_SUCH_HOST,
    Case.NOT_TAKEN,
    Case.SILENT,
    Case.HUNG_UP,
    Case.RESET,
    Case.TRUNCATED,
    Case.DRIPPING,
)
"""They are the same for all providers."""
TRANSIENT = ResponseKind.TRANSIENT
MEANING = ("class", "failure code", "recorded reason")
NOTHING = "\N{EN DASH}"


def tables() -> Mapping[str, str]:
    return {
        "All providers": _table(
            ("event", "the message left", "class"),
            [
                (
                    case[0].upper() + case[1:],
                    "no" if case in UNREACHED else "yes",
                    (ResponseKind.AMBIGUOUS if EXPECTED[case].ambiguous else TRANSIENT).value,
                )
                for case in CONNECTION_FAILURES
            ],
        ),
        "SendGrid: responses": _rules("sendgrid", sendgrid_provider.RESPONSE_RULES),
        "SendGrid: receipts": _reported(webhooks.EVENT_KINDS),
        "SendGrid: bounces": _effects("SendGrid's classification", webhooks.CLASSIFICATIONS),
        "SendGrid: drops": _effects("SendGrid's reason", webhooks.DROP_REASONS),
        **_email_api(postmark.KIND),
        "Amazon SES: responses by error": _aws((*ses_responses.RULES, *aws_responses.COMMON_RULES)),
        "Amazon SES: responses without a known error": _rules("ses", aws_responses.STATUS_RULES),
        "Amazon SES: receipts": _reported(ses_webhooks.EVENT_KINDS),
        "Amazon SES: bounces": _effects("SES's type and subtype", ses_webhooks.BOUNCES),
        **_email_api(resend.KIND),
        **_email_api(mailgun.KIND),
        **_email_api(brevo.KIND),
        **_email_api(mailjet.KIND),
        **_email_api(sparkpost.KIND),
        **_email_api(mailtrap.KIND),
        "SMTP: responses": _described((*smtp_replies.RULES, OTHER_REPLY)),
        "SMTP: what a reply speaks of": _subjects(),
        "Firebase: responses": _described(responses.RULES),
        "Web push: responses": _described(webpush_responses.RULES),
        "WhatsApp: responses by code": _whatsapp(whatsapp_responses.CODE_RULES),
        "WhatsApp: responses without a code": _rules(
            "whatsapp", (*whatsapp_responses.STATUS_RULES, *whatsapp_responses.NO_CODE_RULES)
        ),
        "WhatsApp: receipts": _reported(whatsapp_webhooks.STATUS_KINDS),
        "Twilio: responses by code": _twilio(twilio_responses.CODE_RULES),
        "Twilio: responses without a code": _rules(
            "twilio", (*twilio_responses.STATUS_RULES, *twilio_responses.NO_CODE_RULES)
        ),
        "Twilio: receipts": _reported(twilio_webhooks.STATUS_KINDS),
        "Twilio: failures": _twilio_failures(twilio_responses.FAILURE_RULES),
        "AWS SMS: responses by error": _aws(
            (*aws_sms_responses.RULES, *aws_responses.COMMON_RULES)
        ),
        "AWS SMS: responses without a known error": _rules("aws_sms", aws_responses.STATUS_RULES),
        "AWS SMS: receipts": _aws_events(aws_sms_webhooks.EVENT_RULES),
        "Rooms: Slack by webhooks": _room(slack_webhook.RULES),
        "Rooms: Slack by a bot": _room((*slack_bot.RULES, slack_bot.UNKNOWN_ERROR)),
        "Rooms: Teams": _room(teams.RULES),
        "Rooms: Discord": _room(discord.RULES),
        "Rooms: webhooks": _room(webhook.RULES),
    }


def _email_api(kind: EmailKind) -> Mapping[str, str]:
    """Return the tables of a provider of email with an API."""
    heads = ("event", "the delivery becomes", "the address gets")
    return {
        f"{kind.label}: responses": _rules(kind.label, kind.rules),
        f"{kind.label}: receipts": _table(
            heads,
            [
                (
                    f"`{name}`",
                    _becomes(rule.kind) if rule.kind else NOTHING,
                    ADDRESSES[rule.effect or EFFECTS.get(rule.kind)] if rule.kind else NOTHING,
                )
                for name, rule in kind.events.items()
            ],
        ),
    }


def _named(provider: str, pattern: str) -> str:
    """Return what a response names: as ``FIELDS`` says it, or the codes of the pattern."""
    if (provider, pattern) in FIELDS:
        return FIELDS[provider, pattern]
    return f", code {' or '.join(f'`{code}`' for code in pattern.split('|'))}"


def _rules(provider: str, rules: Sequence[ResponseRule]) -> str:
    rows = [
        (
            ("any other" if rule.statuses == ANY_STATUS else spans(rule.statuses))
            + (_named(provider, rule.field) if rule.field else ""),
            _class(rule.kind, RecipientAction.SUSPECT, rule.reach),
            _code(rule.kind, rule.code),
            rule.reason,
        )
        for rule in _reachable((*rules, *FALLBACK_RULES))
    ]
    return _table(("response", *MEANING), rows)


def _reachable(rules: Iterable[ResponseRule]) -> Iterable[ResponseRule]:
    """Yield the rules that can match."""
    decided: set[int] = set()
    for rule in rules:
        if set(rule.statuses) - decided:
            yield rule
        if rule.field is None:
            decided |= set(rule.statuses)


OTHER_REPLY = ReplyRule(
    "any other", ANY_STATUS, ResponseKind.AMBIGUOUS, "The SMTP server sent an invalid reply."
)


def _subjects() -> str:
    codes: dict[Subject, dict[str, list[int]]] = {}
    for code, subject in CODE_SUBJECTS.items():
        group, _, number = code.partition(".")
        codes.setdefault(subject, {}).setdefault(group, []).append(int(number))
    rows = [
        ("; ".join(f"X.{group}: {spans(some)}" for group, some in groups.items()), subject.value)
        for subject, groups in codes.items()
    ]
    return _table(("the code", "speaks of"), rows)


def _described(rows: Sequence[FcmRule | ReplyRule | WebPushRule]) -> str:
    return _table(
        ("response", *MEANING),
        [
            (
                r.description,
                _class(
                    r.kind,
                    RecipientAction.SUSPECT if isinstance(r, ReplyRule) else r.action,
                    r.reach,
                ),
                _code(r.kind, r.failure_code),
                r.reason,
            )
            for r in rows
        ],
    )


def _aws(rules: Sequence[ErrorRule]) -> str:
    return _table(
        ("AWS's error", *MEANING),
        [
            (
                _listed(rule.names)
                + (f", about {rule.about}" if rule.about else "")
                + (f": {_listed(rule.reasons)}" if rule.reasons else "")
                + (f", about {_listed(rule.members)}" if rule.members else ""),
                # Who sends STOP gets nothing more.
                _class(rule.kind, rule.action, rule.reach).replace(" for marketing", ""),
                _code(rule.kind, rule.code),
                rule.message,
            )
            for rule in rules
        ],
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _aws_events(rules: Mapping[str, EventRule]) -> str:
    return _table(
        ("event", "the delivery becomes", "the number gets", "recorded reason"),
        [
            (
                f"`{name}`",
                DELIVERY_STATUSES[rule.kind].value
                + (f", `{rule.code.value}`" if rule.code else ""),
                ADDRESSES[rule.effect],
                rule.reason or NOTHING,
            )
            for name, rule in rules.items()
        ],
    )


def _whatsapp(rules: Sequence[CodeRule]) -> str:
    return _table(
        ("WhatsApp's code", *MEANING, "failure code by receipt"),
        [
            (
                spans(rule.codes) + (f" with subcode {rule.subcode}" if rule.subcode else ""),
                _class(rule.kind, rule.action, rule.reach),
                _code(rule.kind, rule.code),
                rule.reason,
                f"`{processor.FAILURE_CODES[rule.receipt_kind].value}`",
            )
            for rule in rules
        ],
    )


def _twilio(rules: Sequence[TwilioRule]) -> str:
    return _table(
        ("Twilio's code", *MEANING),
        [
            (
                spans(rule.codes),
                # Who sends STOP gets nothing more.
                _class(rule.kind, rule.action, rule.reach).replace(" for marketing", ""),
                _code(rule.kind, rule.code),
                rule.reason,
            )
            for rule in rules
        ],
    )


def _twilio_failures(rules: Sequence[FailureRule]) -> str:
    return _table(
        ("Twilio's code", "failure code", "the number gets", "recorded reason"),
        [
            (spans(rule.codes), f"`{rule.code.value}`", ADDRESSES[rule.effect], rule.reason)
            for rule in rules
        ],
    )


def _room(rules: Sequence[RoomRule]) -> str:
    """Return a table of answers: those that the table lacks are as for any provider."""
    return _table(
        ("response", "class", "it concerns", "failure code", "recorded reason"),
        [
            (
                ", ".join(f"`{code}`" for code in names)
                if (names := [code for code in rule.codes if isinstance(code, str)])
                else spans(code for code in rule.codes if isinstance(code, int)),
                rule.kind.value
                + (": room disabled" if rule.kind is ResponseKind.INVALID_RECIPIENT else ""),
                "all rooms" if rule.is_account else "the room",
                f"`{rule.code.value}`" if rule.code else _code(rule.kind, None),
                rule.reason,
            )
            for rule in rules
        ],
    )


def _reported(events: Mapping[str, ReceiptKind]) -> str:
    return _table(
        ("event", "the delivery becomes", "the address gets"),
        [(f"`{event}`", _becomes(kind), _address(kind)) for event, kind in events.items()],
    )


def _becomes(kind: ReceiptKind) -> str:
    status = DELIVERY_STATUSES.get(kind)
    code = processor.FAILURE_CODES.get(kind)
    return NOTHING if status is None else status.value + (f", `{code.value}`" if code else "")


ADDRESSES: Mapping[AddressEffect | None, str] = {
    None: NOTHING,
    AddressEffect.HARD_BOUNCE: "nothing more",
    AddressEffect.SOFT_BOUNCE: "nothing more at the third in a row",
    AddressEffect.PROBABLE_BOUNCE: "nothing more at the second in a row",
    AddressEffect.COMPLAINT: "nothing more",
    AddressEffect.UNSUBSCRIBED: "no more marketing",
}


def _address(kind: ReceiptKind) -> str:
    return ADDRESSES[EFFECTS.get(kind)]


def _effects(head: str, effects: Mapping[str, AddressEffect | None]) -> str:
    return _table(
        (head, "the address gets"), [(name, ADDRESSES[effect]) for name, effect in effects.items()]
    )


def _class(kind: ResponseKind, action: RecipientAction | None, reach: Reach | None) -> str:
    effect = DEVICES[action] if kind is ResponseKind.INVALID_RECIPIENT else ""
    if reach in (None, kind.reach):
        return kind.value + effect
    return f"{kind.value}{effect}; {REACHES[reach]}"


def _code(kind: ResponseKind, code: FailureCode | None) -> str:
    """Return the failure code of a rule; two error classes have a fixed code."""
    own = {
        ResponseKind.UNAVAILABLE: FailureCode.CHANNEL_UNAVAILABLE,
        ResponseKind.INVALID_RECIPIENT: FailureCode.INVALID_RECIPIENT,
    }
    return f"`{own.get(kind, code or kind.failure_code).value}`"


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as text with ranges, such as ``1, 2, 200 to 299``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(line) for line in rows]
    return "".join(
        [
            f"| {' | '.join(head)} |\n",
            "|" + "---|" * len(head) + "\n",
            *(f"| {line} |\n" for line in lines),
        ]
    )


PAGE = Path(settings.BASE_DIR, "docs", "reference", "providers.md").read_text(encoding="utf-8")
GUIDE = Path(settings.BASE_DIR, "docs", "guides", "channels.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


@each_case("heading", tables())
def test_table_matches_the_code(heading: str) -> None:
    rows = [line for line in section(heading).splitlines(keepends=True) if line.startswith("|")]
    assert "".join(rows) == tables()[heading]


def test_every_class_is_explained() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", section("Response classes"), re.MULTILINE)
    assert rows[:7] == ["class", "accepted", *ResponseKind]


def test_every_named_variable_exists() -> None:
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)[`=]", PAGE + GUIDE))
    reasons = {name for rule in aws_sms_responses.RULES for name in rule.reasons}
    assert named - reasons - aws_sms_webhooks.EVENT_RULES.keys() <= VARIABLES.keys()


def test_every_provider_is_on_the_page() -> None:
    senders = (
        "SendGrid",
        "Postmark",
        "Amazon SES",
        "Resend",
        "Mailgun",
        "Brevo",
        "Mailjet",
        "SparkPost",
        "Mailtrap",
        "SMTP",
        "Firebase",
        "WhatsApp",
        "Twilio",
        "AWS SMS",
        "In-app",
    )
    for name in (*senders, "Slack by webhooks", "Slack by a bot", "Teams", "Discord", "webhooks"):
        assert name in PAGE
    assert len(SUBJECTS) == len(SPECS)


def test_numbers_match_the_code() -> None:
    assert f"{MIN_FAILURES} such in a minute, if they are half of all" in PAGE
    assert MIN_PERCENT == 50
    waits = (OUTAGE_DELAY.seconds, UNCOUNTED_MAX_DELAY.seconds // 60, MAX_OUTAGE.days)
    assert waits == (30, 15, 3)
    assert f"{waits[0]} s, 1, 2 … {waits[1]} min, for three days at most" in PAGE
    assert f"after {http.TOTAL_TIMEOUT:.0f} seconds it is over" in PAGE
    assert MAX_SOFT_BOUNCES == 3
    assert PAGE.count("three times in a row") == 1


@each_case(
    "numbers, text",
    [
        ((429,), "429"),
        (range(300, 400), "300 to 399"),
        ((1, 2, 5), "1, 2, 5"),
        ((131051, 131052, 131053), "131051 to 131053"),
        ((*range(300, 302), 401, 403, 404, 405), "300, 301, 401, 403 to 405"),
    ],
)
def test_numbers_are_written_as_ranges(numbers: range, text: str) -> None:
    assert spans(numbers) == text
