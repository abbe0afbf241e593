"""The sandbox, in every provider's place: whatever API clients in test mode send goes there.

Each has a name, and so an account, of its own: its circuits, its rate and its threads are nobody
else's, however ill the sandbox is. Its webhooks come as those of the providers it stands in for.
"""

from functools import cache

from django.conf import settings

from ..timing import utc_now
from .base import Channel as Provider
from .email_sendgrid import SendGrid
from .whatsapp_cloud import WhatsApp

SENDGRID_KEY = "SG.sandbox"
WHATSAPP_KEY = "EAAsandbox"
WHATSAPP_NUMBER = "100000000000001"
"""What the sandbox takes from everybody: there is nothing to keep secret."""


@cache
def sendgrid() -> SendGrid:
    """Return the sandbox as SendGrid: test mail goes there, whoever carries mail otherwise."""
    return SendGrid(
        name="sandbox-sendgrid",
        api_key=SENDGRID_KEY,
        base_url=settings.SANDBOX_URL,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        webhook_public_key="",
        clock=utc_now,
    )


@cache
def fcm() -> Provider:
    """Return the sandbox as Firebase."""
    # Here, since importing Google's libraries takes half a second that few processes need.
    from .push_fcm import FCM

    return FCM(
        name="sandbox-fcm",
        credentials=settings.SANDBOX_FCM_CREDENTIALS,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
    )


@cache
def whatsapp() -> WhatsApp:
    """Return the sandbox as WhatsApp's Cloud API."""
    return WhatsApp(
        name="sandbox-whatsapp",
        token=WHATSAPP_KEY,
        phone_number_id=WHATSAPP_NUMBER,
        base_url=settings.SANDBOX_URL,
        app_secret="",
        verify_token="",
        version=settings.WHATSAPP_API_VERSION,
        clock=utc_now,
    )


def forget() -> None:
    """Make them anew at the next use: the settings are others."""
    for made in (sendgrid, fcm, whatsapp):
        made.cache_clear()
