"""The part of SNS that a receiver calls: the certificate, and the confirmation of subscriptions."""

from collections.abc import Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import msgspec

from ...credentials import AwsAccount
from ...log import Record
from ...outcomes import Outcomes, accepted
from ...responses import ProviderResponse
from ..base import Channel, DisplayedMessage, IncomingRequest, Provider, RequestResult
from . import signature
from .signature import AwsProblem
from .topics import Topics

PREFIX = "/sns/"
VERSION = "2010-03-31"
_NAMESPACE = f'xmlns="http://sns.amazonaws.com/doc/{VERSION}/"'
XML = {"Content-Type": "text/xml"}
PARAMETERS = frozenset({"Action", "Version", "TopicArn", "Token", "AuthenticateOnUnsubscribe"})
INVALID_TOKEN = AwsProblem(400, "InvalidParameter", "Invalid parameter: Token")
INVALID_TOPIC = AwsProblem(400, "InvalidParameter", "Invalid parameter: TopicArn")
INVALID_ACTION = AwsProblem(400, "InvalidAction", "Could not find operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sns(Provider):
    """``/sns/`` stands for the host of SNS in a region."""

    account: AwsAccount
    topics: Topics
    name = "sns"
    title = "Amazon SNS"
    channel = Channel.NONE
    route = r"/sns/{rest:.*}"
    max_body = 16 * 1024
    outcomes = Outcomes((accepted("accepted", "Answered."),), default="accepted")
    addressing = "SNS has no recipients here."

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the certificate, or confirm a subscription."""
        if request.method == "GET":
            return self._certificate(request)
        form = dict(parse_qsl((request.body or b"").decode(errors="replace")))
        problem = signature.problem(request, account=self.account, service="sns", now=now)
        problem = problem or self._problem(request, form)
        if problem is not None:
            return RequestResult(
                outcome="refused",
                response=_error(problem),
                reason=problem.message,
                is_message=False,
            )
        arn = f"{self.account.topic}:{form['Token'][:8]}"
        body = (
            f"<ConfirmSubscriptionResponse {_NAMESPACE}><ConfirmSubscriptionResult>"
            f"<SubscriptionArn>{arn}</SubscriptionArn></ConfirmSubscriptionResult>"
            "</ConfirmSubscriptionResponse>"
        )
        return RequestResult(
            outcome="confirmed",
            response=ProviderResponse(status=HTTPStatus.OK, body=body.encode(), headers=XML),
            is_message=False,
            title="Subscription",
            logged_body=msgspec.json.encode({**form, "Token": "…"}),
        )

    def memory(self) -> Sequence[MutableSet[str] | MutableMapping[str, Any]]:
        """Return the subscriptions, which a reset ends."""
        return self.topics.tokens, self.topics.subscribed

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a message without content, because SNS gets no messages."""
        return DisplayedMessage(title=record.title or "")

    def _certificate(self, request: IncomingRequest) -> RequestResult:
        is_known = request.path == PREFIX + self.topics.certificate_name
        reply = (
            ProviderResponse(status=HTTPStatus.OK, body=self.topics.certificate)
            if is_known
            else ProviderResponse(status=HTTPStatus.FORBIDDEN, body=b"Forbidden")
        )
        return RequestResult(
            outcome="certificate" if is_known else "no-such-certificate",
            response=reply,
            is_message=False,
            title="Certificate",
        )

    def _problem(self, request: IncomingRequest, form: Mapping[str, str]) -> AwsProblem | None:
        kind = request.headers.get("content-type", "").partition(";")[0]
        is_action = form.get("Action") == "ConfirmSubscription" and form.get("Version") == VERSION
        is_post = request.path == PREFIX and kind == "application/x-www-form-urlencoded"
        if not (is_action and is_post and form.keys() <= PARAMETERS):
            return INVALID_ACTION
        if form.get("TopicArn") != self.account.topic:
            return INVALID_TOPIC
        return None if self.topics.confirm(form.get("Token", "")) else INVALID_TOKEN


def _error(problem: AwsProblem) -> ProviderResponse:
    body = (
        f"<ErrorResponse {_NAMESPACE}><Error><Type>Sender</Type>"
        f"<Code>{problem.name}</Code><Message>{escape(problem.message)}</Message></Error>"
        "</ErrorResponse>"
    )
    return ProviderResponse(status=problem.status, body=body.encode(), headers=XML)
