"""The providers under contract."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from devices.push_keys import new_key
from domain.errors import FailureCode
from domain.time import utc_now
from domain.web_push import Subscription
from notifyproject.platform.egress import Deadline
from notifyproject.platform.event_loop import run
from providers.aws_signing import Credentials
from providers.aws_sms.provider import AwsSms
from providers.aws_sns import TYPE_HEADER
from providers.contract import Provider
from providers.discord.provider import Discord
from providers.fcm import credentials as fcm_credentials
from providers.fcm.provider import FCM
from providers.inbox.provider import InAppProvider
from providers.sendgrid.provider import SendGrid
from providers.sendgrid.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER
from providers.ses.provider import SES
from providers.ses.webhooks import tag_of
from providers.slack_bot.provider import SlackBot
from providers.slack_webhook.provider import SlackWebhook
from providers.smtp.provider import SMTP
from providers.teams.provider import Teams
from providers.twilio.provider import Twilio
from providers.webhook.provider import Webhook
from providers.webpush.provider import WebPush
from providers.whatsapp.provider import WhatsApp
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import http_servers, replying, smtp_servers
from tests.providers.contract.subjects import (
    ASKS_FOR_A_PAUSE,
    EMAIL,
    PHONE,
    REFERENCE,
    ROOM,
    THREAD,
    TOKEN,
    Place,
    Reports,
    Subject,
    message,
)
from tests.providers.email_apis.cases import KINDS
from tests.providers.email_apis.kinds import KindCase
from tests.support.fakes import socket_server
from tests.support.providers import aws, aws_sms, ses, twilio, webpush, whatsapp
from tests.support.providers.webhook_requests import URL

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
    servers=http_servers(
        202,
        b"",
        "X-Message-Id: sg-1",
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


def _email_api(case: KindCase) -> Subject:
    """Return the contract of a provider of email with an API, by its recorded answers."""

    def make(place: Place, account: str) -> Provider:
        own = {case.credential: f"{case.options[case.credential]}-of-{account}"}
        return case.account(options={"api_url": place.url, **own}, clock=utc_now)

    def event(_reference: str) -> bytes:
        # The recorded event is about the reference of all subjects.
        return case.encode(case.events[0].event, True, utc_now())

    def recorded(code: FailureCode, *headers: str, status: int = 0) -> bytes:
        answer = case.answer(code, status=status)
        return socket_server.response(answer.status, answer.raw, *headers)

    return Subject(
        provider=type(case.account()),
        label=case.name,
        make=make,
        outbound=message("email", EMAIL),
        servers=http_servers(
            case.success,
            json.dumps(case.accepted).encode(),
            refusals={
                Case.TOO_MANY: recorded(FailureCode.RATE_LIMITED, ASKS_FOR_A_PAUSE),
                Case.NO_CREDENTIALS: recorded(FailureCode.CHANNEL_UNAVAILABLE, status=401),
                Case.BAD_RECIPIENT: recorded(FailureCode.INVALID_RECIPIENT),
                Case.REFUSED: recorded(FailureCode.REJECTED),
            },
        ),
        secrets=lambda _place: [case.options[case.credential], *case.secrets.values()],
        reports=Reports(
            body=event,
            sign=lambda raw, genuine: case.sign(raw, genuine, utc_now()),
            signs_body=case.signs_body,
        ),
    )


def _ses(place: Place, account: str) -> SES:
    credentials = Credentials(
        access_key_id=f"AKIA{account.upper()}",
        secret_access_key=f"secret-of-{account}",
        session_token=f"session-of-{account}",
    )
    return ses.account(
        base_url=place.url,
        credentials=credentials,
        clock=utc_now,
        receiver=aws.receiver(credentials=credentials, clock=utc_now),
    )


def _ses_event(reference: str) -> bytes:
    assert reference == ses.REFERENCE.replace("a" * 24, THREAD)
    mail = {"headers": [{"name": "X-Notify-Reference", "value": reference}]}
    message = ses.event("Delivery", delivery={"smtpResponse": "250 delivered"}, mail=mail)
    return aws.envelope(message, at=utc_now())


SIMPLE_EMAIL_SERVICE = Subject(
    provider=SES,
    make=_ses,
    outbound=message("email", EMAIL),
    servers=http_servers(
        200,
        f'{{"MessageId": "{ses.MESSAGE_ID}"}}'.encode(),
        refusals={
            Case.TOO_MANY: ses.refused(
                "TooManyRequestsException", status=429, headers=(ASKS_FOR_A_PAUSE,)
            ),
            Case.NO_CREDENTIALS: ses.refused("UnrecognizedClientException", status=403),
            Case.REFUSED: ses.refused("BadRequestException", f"{EMAIL} is none"),
        },
    ),
    never={Case.BAD_RECIPIENT: "SES doesn't say whether the sender or a recipient is invalid."},
    spelled=tag_of,
    secrets=lambda _place: ["secret-of-first", "session-of-first"],
    reports=Reports(
        body=_ses_event,
        sign=lambda _raw, genuine: {
            TYPE_HEADER: "Notification" if genuine else "SubscriptionConfirmation"
        },
        is_envelope=True,
    ),
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
    servers=smtp_servers(
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


def _fcm(place: Place, account: str) -> FCM:
    credentials = json.dumps(place.project.key)
    # The access token is there before the clock of a send runs.
    run(
        fcm_credentials.shared_token_cache(credentials, clock=utc_now).current(
            deadline=Deadline.after(10)
        )
    )
    own = place.project.key["project_id"]
    return FCM(
        credentials=credentials,
        base_url=place.url,
        clock=utc_now,
        project_id=own if account == "first" else account,
    )


def _fcm_error(status: int, name: str, code: str | None = None, *headers: str) -> bytes:
    kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    details = [{"@type": kind, "errorCode": code}] if code else []
    body = {"error": {"status": name, "message": f"{TOKEN} is none", "details": details}}
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def _fcm_secrets(place: Place) -> Sequence[str]:
    credentials, key = json.dumps(place.project.key), place.project.key["private_key"]
    token = run(
        fcm_credentials.shared_token_cache(credentials, clock=utc_now).current(
            deadline=Deadline.after(10)
        )
    )
    return [token.value, *(line for line in key.splitlines()[1:-1] if line)]


FIREBASE = Subject(
    provider=FCM,
    make=_fcm,
    outbound=message("push", TOKEN, platform="android"),
    servers=http_servers(
        200,
        b'{"name": "projects/shop/messages/1"}',
        refusals={
            Case.TOO_MANY: _fcm_error(
                429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", ASKS_FOR_A_PAUSE
            ),
            Case.NO_CREDENTIALS: _fcm_error(401, "UNAUTHENTICATED"),
            Case.BAD_RECIPIENT: _fcm_error(404, "NOT_FOUND", "UNREGISTERED"),
            Case.REFUSED: _fcm_error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        },
    ),
    # What was refused for its access token was not taken: it goes once more, with another.
    begun={Case.NO_CREDENTIALS: 2},
    secrets=_fcm_secrets,
)


_PUSH_KEYS = {account: new_key() for account in ("first", "second")}
_BROWSER = new_key()
_SUBSCRIPTION = Subscription(
    endpoint=f"https://{webpush.MOZILLA}/wpush/v2/{TOKEN}",
    host=webpush.MOZILLA,
    p256dh=_BROWSER.public,
    auth=bytes(16),
    fingerprint=_PUSH_KEYS["first"].fingerprint,
)


def _webpush(place: Place, account: str) -> WebPush:
    return WebPush(
        keys=[_PUSH_KEYS.setdefault(account, new_key()).private_text],
        subject=webpush.SUBJECT,
        public_url=webpush.PUBLIC_URL,
        home=webpush.HOME,
        stand_in=place.url,
        clock=utc_now,
    )


BROWSERS = Subject(
    provider=WebPush,
    make=_webpush,
    outbound=message("push", "", platform="web", subscription=webpush.sealed(_SUBSCRIPTION)),
    servers=http_servers(
        201,
        b"",
        f"Location: https://{webpush.MOZILLA}/m/1",
        refusals={
            Case.TOO_MANY: socket_server.response(429, b"", ASKS_FOR_A_PAUSE),
            Case.NO_CREDENTIALS: socket_server.response(403, b'{"reason": "BadJwtToken"}'),
            Case.BAD_RECIPIENT: socket_server.response(410, TOKEN.encode()),
            Case.REFUSED: socket_server.response(400, TOKEN.encode()),
        },
    ),
    secrets=lambda _place: [_PUSH_KEYS["first"].private_text],
    is_encrypted=True,
)


def _whatsapp(place: Place, account: str) -> WhatsApp:
    return WhatsApp(
        token=f"EAA-token-of-{account}",
        phone_number_id=whatsapp.PHONE_NUMBER_ID,
        base_url=place.url,
        app_secret=whatsapp.SECRET,
        verify_token="a-verify-token",
        version=whatsapp.API_VERSION,
        clock=utc_now,
    )


def _whatsapp_error(code: int, *headers: str) -> bytes:
    return whatsapp.refused(code, headers=headers, message=f"{PHONE} is none")


def _signed_by_meta(raw: bytes, genuine: bool) -> Mapping[str, str]:
    return whatsapp.signed(raw, secret=whatsapp.SECRET if genuine else "another")


def _whatsapp_event(reference: str) -> bytes:
    status = whatsapp.status(biz_opaque_callback_data=reference)
    return whatsapp.webhook(whatsapp.change(status))


CLOUD_API = Subject(
    provider=WhatsApp,
    make=_whatsapp,
    outbound=message("whatsapp", PHONE),
    servers=http_servers(
        200,
        b'{"messages": [{"id": "wamid.1"}]}',
        refusals={
            Case.TOO_MANY: _whatsapp_error(130429, ASKS_FOR_A_PAUSE),
            Case.NO_CREDENTIALS: _whatsapp_error(190),
            Case.BAD_RECIPIENT: _whatsapp_error(131026),
            Case.REFUSED: _whatsapp_error(131009),
        },
    ),
    secrets=lambda _place: ["token-of-first", whatsapp.SECRET, "a-verify-token"],
    reports=Reports(body=_whatsapp_event, sign=_signed_by_meta),
)


def _twilio(place: Place, account: str) -> Twilio:
    return twilio.account(base_url=place.url, password=f"secret-of-{account}", clock=utc_now)


def _signed_by_twilio(raw: bytes, genuine: bool) -> Mapping[str, str]:
    url = f"{URL}?ref={REFERENCE}"
    try:
        return twilio.sign(raw, url=url, token=twilio.TOKENS[0] if genuine else "another")
    except ValueError:
        # Twilio sends forms, and signs nothing else.
        return {}


def _twilio_event(reference: str) -> bytes:
    assert reference == REFERENCE
    return urlencode(twilio.callback()).encode()


TEXT_MESSAGES = Subject(
    provider=Twilio,
    make=_twilio,
    outbound=message("sms", PHONE),
    servers=http_servers(
        201,
        f'{{"sid": "{twilio.SID}", "status": "accepted"}}'.encode(),
        refusals={
            Case.TOO_MANY: twilio.refused(20429, status=429, headers=(ASKS_FOR_A_PAUSE,)),
            Case.NO_CREDENTIALS: twilio.refused(20003, status=401),
            Case.BAD_RECIPIENT: twilio.refused(21211),
            Case.REFUSED: twilio.refused(21602),
        },
    ),
    secrets=lambda _place: ["secret-of-first", *twilio.TOKENS],
    reports=Reports(
        body=_twilio_event, sign=_signed_by_twilio, url=lambda reference: f"{URL}?ref={reference}"
    ),
)


def _aws_sms(place: Place, account: str) -> AwsSms:
    credentials = Credentials(
        access_key_id=f"AKIA{account.upper()}",
        secret_access_key=f"secret-of-{account}",
        session_token=f"session-of-{account}",
    )
    return aws_sms.account(
        base_url=place.url,
        credentials=credentials,
        clock=utc_now,
        receiver=aws.receiver(credentials=credentials, clock=utc_now),
    )


def _aws_sms_event(reference: str) -> bytes:
    event = aws_sms.event("TEXT_DELIVERED", context={"ref": reference})
    return aws.envelope(event, at=utc_now())


END_USER_MESSAGING = Subject(
    provider=AwsSms,
    make=_aws_sms,
    outbound=message("sms", PHONE),
    servers=http_servers(
        200,
        f'{{"MessageId": "{aws_sms.MESSAGE_ID}"}}'.encode(),
        refusals={
            Case.TOO_MANY: aws_sms.refused("ThrottlingException", headers=(ASKS_FOR_A_PAUSE,)),
            Case.NO_CREDENTIALS: aws_sms.refused("UnrecognizedClientException", status=403),
            Case.BAD_RECIPIENT: aws_sms.refused(
                "ValidationException", Fields=[{"Name": "DestinationPhoneNumber"}]
            ),
            Case.REFUSED: aws_sms.refused("ValidationException", Reason="INVALID_REQUEST"),
        },
    ),
    secrets=lambda _place: ["secret-of-first", "session-of-first"],
    reports=Reports(
        body=_aws_sms_event,
        sign=lambda _raw, genuine: {
            TYPE_HEADER: "Notification" if genuine else "SubscriptionConfirmation"
        },
        is_envelope=True,
    ),
)

ROOM_ID = "ops"
SIGNING_SECRET = f"whsec_{base64.b64encode(b'a secret of twenty-four b').decode()}"
PROXY_REFUSES = socket_server.response(429, b"", ASKS_FOR_A_PAUSE)


def _room_secrets(_place: Place) -> Sequence[str]:
    return [ROOM.rpartition("/")[2]]


def _slack_error(error: str) -> bytes:
    return socket_server.response(200, json.dumps({"ok": False, "error": error}).encode())


def _discord_error(status: int, code: int) -> bytes:
    body = {"message": f"{ROOM} is none", "code": code}
    return socket_server.response(status, json.dumps(body).encode())


SLACK_WEBHOOK = Subject(
    provider=SlackWebhook,
    make=lambda place, _account: SlackWebhook(base_url=place.url, clock=utc_now),
    outbound=message("room", ROOM, scope=ROOM_ID),
    servers=http_servers(
        200,
        b"ok",
        refusals={
            Case.TOO_MANY: PROXY_REFUSES,
            Case.NO_CREDENTIALS: socket_server.response(403, b"action_prohibited"),
            Case.BAD_RECIPIENT: socket_server.response(404, b"no_service"),
            Case.REFUSED: socket_server.response(400, b"invalid_blocks"),
        },
    ),
    secrets=_room_secrets,
    gives_id=False,
    has_accounts=False,
)

SLACK_BOT = Subject(
    provider=SlackBot,
    make=lambda place, account: SlackBot(
        token=f"xoxb-token-of-{account}", base_url=place.url, clock=utc_now
    ),
    outbound=message("room", "C0ADASROOM", scope=ROOM_ID),
    servers=http_servers(
        200,
        b'{"ok": true, "channel": "C0ADASROOM", "ts": "1503435956.000247"}',
        refusals={
            Case.TOO_MANY: PROXY_REFUSES,
            Case.NO_CREDENTIALS: _slack_error("invalid_auth"),
            Case.BAD_RECIPIENT: _slack_error("is_archived"),
            Case.REFUSED: _slack_error("msg_too_long"),
        },
    ),
    secrets=lambda _place: ["xoxb-token-of-first"],
)

TEAMS = Subject(
    provider=Teams,
    make=lambda place, _account: Teams(base_url=place.url, clock=utc_now),
    outbound=message("room", ROOM, scope=ROOM_ID),
    servers=http_servers(
        202,
        b"",
        refusals={
            Case.TOO_MANY: PROXY_REFUSES,
            Case.NO_CREDENTIALS: socket_server.response(401, b"{}"),
            Case.BAD_RECIPIENT: socket_server.response(404, b"{}"),
            Case.REFUSED: socket_server.response(400, b"{}"),
        },
    ),
    secrets=_room_secrets,
    gives_id=False,
    has_accounts=False,
)

DISCORD = Subject(
    provider=Discord,
    make=lambda place, _account: Discord(base_url=place.url, clock=utc_now),
    outbound=message("room", ROOM, scope=ROOM_ID),
    servers=http_servers(
        200,
        b'{"id": "1047321850192347136"}',
        refusals={
            Case.TOO_MANY: PROXY_REFUSES,
            Case.NO_CREDENTIALS: _discord_error(403, 50013),
            Case.BAD_RECIPIENT: _discord_error(404, 10015),
            Case.REFUSED: _discord_error(400, 50035),
        },
    ),
    secrets=_room_secrets,
    has_accounts=False,
)

RECEIVER = Subject(
    provider=Webhook,
    make=lambda place, _account: Webhook(base_url=place.url, clock=utc_now),
    outbound=message("room", ROOM, scope=ROOM_ID, secrets=(SIGNING_SECRET,)),
    servers={
        **http_servers(
            200,
            b"{}",
            refusals={
                Case.TOO_MANY: PROXY_REFUSES,
                Case.NO_CREDENTIALS: socket_server.response(401, b""),
                Case.BAD_RECIPIENT: socket_server.response(410, b"{}"),
                Case.REFUSED: socket_server.response(400, b"{}"),
            },
        ),
        Case.NONSENSE: replying(socket_server.response(600, b"<html>Welcome</html>")),
    },
    secrets=lambda _place: [SIGNING_SECRET, *_room_secrets(_place)],
    gives_id=False,
    has_accounts=False,
)

NO_PROVIDER = "The inbox contacts no provider."

INBOX = Subject(
    provider=InAppProvider,
    make=lambda _place, _account: InAppProvider(),
    outbound=message("in_app", "ada"),
    servers={Case.ACCEPTED: replying(b"")},
    never={case: NO_PROVIDER for case in Case if case is not Case.ACCEPTED},
    begun={Case.ACCEPTED: 0},
    secrets=lambda _place: [],
    gives_id=False,
    has_accounts=False,
)

ROOMS = (SLACK_WEBHOOK, SLACK_BOT, TEAMS, DISCORD, RECEIVER)
EMAIL_APIS = tuple(map(_email_api, KINDS))
SENDERS = (
    *EMAIL_APIS,
    SENDGRID,
    SIMPLE_EMAIL_SERVICE,
    MAIL_SERVER,
    FIREBASE,
    BROWSERS,
    CLOUD_API,
    TEXT_MESSAGES,
    END_USER_MESSAGING,
)
SUBJECTS = (*SENDERS, *ROOMS, INBOX)
EVERY = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
