"""Creation of the providers, their webhooks, and their credentials."""

from dataclasses import dataclass
from pathlib import Path

from . import credentials
from .behaviours import Behaviours
from .config import Config
from .credentials import MetaAccount
from .providers.base import Provider, WebhookFormat
from .providers.fcm.provider import Fcm
from .providers.google_oauth.provider import GoogleOAuth
from .providers.google_oauth.tokens import AccessTokens
from .providers.sendgrid.events import SignedWebhooks
from .providers.sendgrid.provider import SendGrid
from .providers.whatsapp import events as whatsapp_events
from .providers.whatsapp.provider import WhatsApp
from .providers.whatsapp.templates import Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What a client needs to use a sandbox: its URL, its data folder, and credentials."""

    url: str
    data: Path
    public_key: str
    service_account: Path
    whatsapp: MetaAccount


def create_secrets(data: Path, *, url: str) -> Sandbox:
    """Create missing credentials and return all of them. Raises UnreadableKeyError."""
    return Sandbox(
        url=url,
        data=data,
        public_key=credentials.ensure_webhook_key(data),
        service_account=credentials.ensure_service_account(data, url=url),
        whatsapp=credentials.ensure_whatsapp_account(data),
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
        GoogleOAuth(behaviours=behaviours, timings=config.timings, account=account, tokens=tokens),
    ]
    sendgrid_webhooks = SignedWebhooks(private_key=credentials.load_webhook_key(config.data))
    return {provider.name: provider for provider in providers}, {
        "sendgrid": (sendgrid_webhooks, config.webhook_url),
        "whatsapp": (whatsapp_events.SignedWebhooks(business), config.whatsapp_webhook_url),
    }
