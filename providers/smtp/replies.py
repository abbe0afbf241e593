"""Classifies SMTP replies by the step they answer and by what they speak of."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach

from ..http import excerpt
from ..mail_replies import LOGIN_CODES, Reply, Step, Subject
from ..response_rules import ResponseKind as Kind
from ..response_rules import build_error

MAILBOX_BUSY = 450
ERROR_REPLIES = range(400, 600)
"""Codes of a rejection. Any other unexpected code is invalid."""
TEMPORARY, PERMANENT = range(400, 500), range(500, 600)
_LATER = (Step.RECIPIENT, Step.MESSAGE)


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """One row of the table: conditions, and the class of the replies that meet them all."""

    description: str
    statuses: Sequence[int]
    kind: Kind
    reason: str
    failure_code: FailureCode | None = None
    _: KW_ONLY
    steps: Sequence[Step] = tuple(Step)
    subjects: Sequence[Subject] = tuple(Subject)
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_of_scope: bool = False
    """It is about the sender, or possibly: that of a brand affects no other message."""

    def matches(self, reply: Reply, subject: Subject) -> bool:
        """Return whether a reply meets all conditions of the rule."""
        return (
            reply.status in self.statuses and reply.step in self.steps and subject in self.subjects
        )


RULES: tuple[ReplyRule, ...] = (
    ReplyRule(
        "4yz to the login",
        TEMPORARY,
        Kind.UNAVAILABLE,
        "The SMTP server can't check the credentials now.",
        steps=(Step.LOGIN,),
    ),
    ReplyRule(
        "5yz to the login",
        PERMANENT,
        Kind.UNAVAILABLE,
        "The SMTP server rejected the credentials.",
        steps=(Step.LOGIN,),
    ),
    ReplyRule(
        "5yz to the connection itself",
        PERMANENT,
        Kind.UNAVAILABLE,
        "The SMTP server rejected the connection.",
        steps=(Step.CONNECTION,),
    ),
    ReplyRule(
        "5yz about the size",
        PERMANENT,
        Kind.PERMANENT,
        "The message exceeds the SMTP server's size limit.",
        FailureCode.TOO_LARGE,
        subjects=(Subject.SIZE,),
    ),
    ReplyRule(
        "530, 534, 535, or 538 to the sender",
        LOGIN_CODES,
        Kind.UNAVAILABLE,
        "The SMTP server requires a login, or TLS before it.",
        steps=(Step.SENDER,),
    ),
    ReplyRule(
        "5yz to the sender, unless about the content",
        PERMANENT,
        Kind.UNAVAILABLE,
        "The SMTP server rejected the configured sender.",
        steps=(Step.SENDER,),
        subjects=tuple(set(Subject) - {Subject.CONTENT}),
        is_of_scope=True,
    ),
    ReplyRule(
        "4yz to the sender, about the account",
        TEMPORARY,
        Kind.UNAVAILABLE,
        "The SMTP server refuses the account for now.",
        steps=(Step.SENDER,),
        subjects=(Subject.ACCOUNT,),
    ),
    ReplyRule(
        "4yz or 5yz to the recipient or the message, about the account",
        ERROR_REPLIES,
        Kind.UNAVAILABLE,
        "The SMTP server refuses the account, its sender address, or its rate.",
        steps=_LATER,
        subjects=(Subject.ACCOUNT,),
        reach=Reach.UNCERTAIN,
        is_of_scope=True,
    ),
    ReplyRule(
        "4yz or 5yz about a busy mailbox",
        ERROR_REPLIES,
        Kind.TRANSIENT,
        "The recipient's mailbox gets too many messages.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        steps=_LATER,
        subjects=(Subject.BUSY_MAILBOX,),
        reach=Reach.RECIPIENT,
    ),
    ReplyRule(
        "4yz or 5yz about greylisting",
        ERROR_REPLIES,
        Kind.TRANSIENT,
        "The recipient's server asks for a later try.",
        steps=_LATER,
        subjects=(Subject.GREYLISTING,),
        reach=Reach.RECIPIENT,
    ),
    ReplyRule(
        "5yz about the recipient",
        PERMANENT,
        Kind.INVALID_RECIPIENT,
        "Unknown mailbox.",
        steps=_LATER,
        subjects=(Subject.RECIPIENT,),
    ),
    ReplyRule(
        "5yz about a full mailbox",
        PERMANENT,
        Kind.INVALID_RECIPIENT,
        "The mailbox is full.",
        steps=_LATER,
        subjects=(Subject.FULL_MAILBOX,),
    ),
    ReplyRule(
        "5yz that is unclear, to the recipient or the message",
        PERMANENT,
        Kind.PERMANENT,
        "The SMTP server rejected the message.",
        steps=_LATER,
        subjects=(Subject.UNCLEAR,),
        reach=Reach.UNCERTAIN,
    ),
    ReplyRule("any other 5yz", PERMANENT, Kind.PERMANENT, "The SMTP server rejected the message."),
    ReplyRule(
        "4yz about the recipient or a full mailbox",
        TEMPORARY,
        Kind.TRANSIENT,
        "The recipient's mailbox is unavailable for now.",
        steps=_LATER,
        subjects=(Subject.RECIPIENT, Subject.FULL_MAILBOX),
        reach=Reach.RECIPIENT,
    ),
    ReplyRule(
        "450 to the recipient",
        (MAILBOX_BUSY,),
        Kind.TRANSIENT,
        "The recipient's mailbox is unavailable for now.",
        steps=(Step.RECIPIENT,),
        reach=Reach.RECIPIENT,
    ),
    ReplyRule("any other 4yz", TEMPORARY, Kind.TRANSIENT, "Temporary error of the SMTP server."),
)
"""The first match applies."""


def classify_reply(reply: Reply, *, scope: str | None = None) -> ProviderError:
    """Return the error for a reply with a status of ERROR_REPLIES, to a request with a scope."""
    subject = reply.subject
    rule = next(rule for rule in RULES if rule.matches(reply, subject))
    return build_error(
        rule.kind,
        f"{rule.reason} ({reply.status})",
        code=rule.failure_code,
        response=ProviderResponse(
            status=reply.status, code=reply.enhanced_code, excerpt=excerpt(reply.text)
        ),
        retry_after=None,
        scope=scope if rule.is_of_scope else None,
        reach=rule.reach,
    )
