"""Creation of the providers, their webhooks, and their credentials."""

from dataclasses import dataclass
from pathlib import Path

from . import credentials
from .behaviours import Behaviours
from .config import Config
from .credentials import AwsAccount, MailAccounts, MetaAccount, TwilioAccount
from .providers.aws.sns import Sns
from .providers.aws.topics import SignedWebhooks as SnsWebhooks
from .providers.aws.topics import Topics
from .providers.aws_sms.provider import AwsSms
from .providers.base import Provider, WebhookFormat
from .providers.fcm.provider import Fcm
from .providers.google_oauth.provider import GoogleOAuth
from .providers.google_oauth.tokens import AccessTokens
from .providers.mail_apis import mailgun, postmark, resend
from .providers.rooms.discord import Discord
from .providers.rooms.receiver import WebhookReceiver
from .providers.rooms.slack import SlackBot, SlackWebhook
from .providers.rooms.teams import Teams
from .providers.sendgrid.events import SignedWebhooks
from .providers.sendgrid.provider import SendGrid
from .providers.ses.provider import Ses
from .providers.twilio import events as twilio_events
from .providers.twilio.provider import Twilio
from .providers.webpush.browsers import Browsers
from .providers.webpush.provider import WebPush
from .providers.whatsapp import events as whatsapp_events
from .providers.whatsapp.provider import WhatsApp
from .providers.whatsapp.templates import Templates

MAIL_APIS = (
    (postmark.Postmark, postmark.Webhooks),
    (resend.Resend, resend.Webhooks),
    (mailgun.Mailgun, mailgun.Webhooks),
)
"""The providers of email beside SendGrid, and the formats of their webhooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a client needs to use a sandbox: its URL, its data folder, and credentials."""

    url: str
    data: Path
    public_key: str
    service_account: Path
    whatsapp: MetaAccount
    twilio: TwilioAccount
    mail: MailAccounts
    aws: AwsAccount


def create_secrets(data: Path, *, url: str) -> Sandbox:
    """Create missing credentials and return all of them. Raises UnreadableKeyError."""
    return Sandbox(
        url=url,
        data=data,
        public_key=credentials.ensure_webhook_key(data),
        service_account=credentials.ensure_service_account(data, url=url),
        whatsapp=credentials.ensure_whatsapp_account(data),
        twilio=credentials.ensure_twilio_account(data),
        mail=credentials.ensure_mail_accounts(data),
        aws=AwsAccount(),
    )


def assemble(
    config: Config, *, behaviours: Behaviours
) -> tuple[dict[str, Provider], dict[str, tuple[WebhookFormat, str]]]:
    """Return the providers by name, and the webhook format and receiver URL by provider name.

    Raises UnreadableKeyError, UnreadableTemplatesError, or OSError.
    """
    account = credentials.load_service_account(config.data)
    tokens = AccessTokens.from_account(account)
    business = credentials.ensure_whatsapp_account(config.data)
    twilio = credentials.ensure_twilio_account(config.data)
    mail = credentials.ensure_mail_accounts(config.data)
    aws = AwsAccount()
    topics = Topics(account=aws, data=config.data)
    providers: list[Provider] = [
        SendGrid(behaviours=behaviours, timings=config.timings),
        Fcm(behaviours=behaviours, timings=config.timings, account=account, tokens=tokens),
        WhatsApp(
            behaviours=behaviours,
            timings=config.timings,
            account=business,
            templates=Templates.read(config.data, extra=config.whatsapp_templates),
            newest_version=config.whatsapp_api_version,
        ),
        Twilio(
            behaviours=behaviours,
            timings=config.timings,
            account=twilio,
            webhook_url=config.twilio_webhook_url,
        ),
        AwsSms(behaviours=behaviours, timings=config.timings, account=aws),
        Ses(behaviours=behaviours, timings=config.timings, account=aws),
        Sns(behaviours=behaviours, timings=config.timings, account=aws, topics=topics),
        WebPush(
            behaviours=behaviours,
            timings=config.timings,
            browsers=Browsers(credentials.ensure_browsers_secret(config.data)),
        ),
        GoogleOAuth(behaviours=behaviours, timings=config.timings, account=account, tokens=tokens),
        *(
            mail_api(behaviours=behaviours, timings=config.timings, accounts=mail)
            for mail_api, _ in MAIL_APIS
        ),
        *(
            room(behaviours=behaviours, timings=config.timings)
            for room in (SlackWebhook, SlackBot, Teams, Discord, WebhookReceiver)
        ),
    ]
    sendgrid_webhooks = SignedWebhooks(private_key=credentials.load_webhook_key(config.data))
    return {provider.name: provider for provider in providers}, {
        "sendgrid": (sendgrid_webhooks, config.webhook_url),
        "whatsapp": (whatsapp_events.SignedWebhooks(business), config.whatsapp_webhook_url),
        "twilio": (twilio_events.SignedWebhooks(twilio), config.twilio_webhook_url),
        **{
            mail_api.name: (webhooks(mail), _below(config.mail_webhooks_url, mail_api.name))
            for mail_api, webhooks in MAIL_APIS
        },
        **{
            name: (SnsWebhooks(topics), _below(config.mail_webhooks_url, name))
            for name in ("ses", "aws_sms")
        },
    }


def _below(url: str, name: str) -> str:
    return f"{url}/{name}" if url else ""
