"""Email providers under contract: SendGrid and SMTP."""

import base64
import json
import time
from collections.abc import Mapping

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from domain.time import utc_now
from providers.sendgrid.provider import SendGrid
from providers.sendgrid.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER
from providers.smtp.provider import SMTP
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import http_desks, mail_desks
from tests.providers.contract.subjects import (
    ASKS_FOR_A_PAUSE,
    EMAIL,
    Place,
    Reports,
    Subject,
    message,
)
from tests.support.fakes import socket_server

KEY = ec.generate_private_key(ec.SECP256R1())
ANOTHER_KEY = ec.generate_private_key(ec.SECP256R1())


def _sendgrid(place: Place, account: str) -> SendGrid:
    public = KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SendGrid(
        api_key=f"SG.key-of-{account}",
        base_url=place.url,
        sender="Notifications <notifications@example.com>",
        webhook_public_key=base64.b64encode(public).decode(),
        clock=utc_now,
    )


def _sendgrid_error(status: int, at: str, *headers: str) -> bytes:
    body = {"errors": [{"message": f"{EMAIL} is none", "field": at, "help": None}]}
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def _signed_by_sendgrid(raw: bytes, genuine: bool) -> Mapping[str, str]:
    timestamp = str(int(time.time()))
    key = KEY if genuine else ANOTHER_KEY
    signature = key.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    return {TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: base64.b64encode(signature).decode()}


def _sendgrid_event(reference: str) -> bytes:
    event = {"event": "delivered", "timestamp": int(time.time()), "sg_event_id": "event-1"}
    return json.dumps([event | {"reference": reference}]).encode()


SENDGRID = Subject(
    provider=SendGrid,
    make=_sendgrid,
    outbound=message("email", EMAIL),
    desks=http_desks(
        *(202, b"", "X-Message-Id: sg-1"),
        refusals={
            Case.TOO_MANY: _sendgrid_error(429, "", ASKS_FOR_A_PAUSE),
            Case.NO_CREDENTIALS: _sendgrid_error(401, ""),
            Case.BAD_RECIPIENT: _sendgrid_error(400, "personalizations.0.to.0.email"),
            Case.REFUSED: _sendgrid_error(400, "subject"),
        },
    ),
    secrets=lambda _place: ["key-of-first"],
    reports=Reports(body=_sendgrid_event, sign=_signed_by_sendgrid),
)


def _smtp(place: Place, account: str) -> SMTP:
    return SMTP(
        sender="Notifications <notifications@example.com>",
        options={
            "host": place.host,
            "port": place.port,
            "username": f"user-of-{account}",
            "password": f"password-of-{account}",
            "use_tls": False,
            "use_ssl": False,
        },
        clock=utc_now,
    )


MAIL_SERVER = Subject(
    provider=SMTP,
    make=_smtp,
    outbound=message("email", EMAIL),
    desks=mail_desks(
        {
            Case.BUSY: {"message": f"451 4.3.0 Local error for {EMAIL}"},
            Case.TOO_MANY: {"RCPT": f"450 4.7.1 <{EMAIL}> gets too much"},
            Case.NO_CREDENTIALS: {"AUTH": "535 5.7.8 Wrong password"},
            Case.BAD_RECIPIENT: {"RCPT": f"550 5.1.1 <{EMAIL}>: no such user"},
            Case.REFUSED: {"message": f"554 5.7.1 Spam to {EMAIL}"},
        }
    ),
    never={Case.REDIRECTED: "The protocol has no redirects."},
    begun={Case.NO_CREDENTIALS: 0},
    pause=None,
    secrets=lambda _place: ["password-of-first"],
)
