"""Email by Amazon SES."""

from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, WebhookSpec
from .variables import Settings

if TYPE_CHECKING:
    from .provider import SES


def build(account: Account) -> "SES":
    """Return the account. Without a topic, it accepts no receipts."""
    from ..aws_signing import Credentials
    from ..aws_sns import Receiver
    from .provider import SES, base_url_of

    values = account.values
    credentials = Credentials.of(values, prefix="SES")
    return SES(
        name=account.name,
        credentials=credentials,
        region=values.SES_REGION,
        base_url=base_url_of(values),
        configuration_set=values.SES_CONFIGURATION_SET,
        receiver=Receiver(
            topics=frozenset(values.SES_TOPICS),
            credentials=credentials,
            base_url=values.SES_SNS_URL,
            clock=utc_now,
        ),
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        clock=utc_now,
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


PROVIDER = ProviderSpec(
    name="ses",
    label="Amazon SES",
    channel=Channel("email"),
    is_configured=lambda account: bool(account.values.SES_ACCESS_KEY_ID),
    build=build,
    webhook=WebhookSpec(content="a notification of Amazon SNS"),
    check=check,
    settings=Settings,
)
