"""SMS by AWS End User Messaging."""

from typing import TYPE_CHECKING, Any

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, WebhookSpec
from .variables import Settings

if TYPE_CHECKING:
    from .provider import AwsSms


def build(account: Account) -> "AwsSms":
    """Return the account. Without a topic, it accepts no receipts."""
    from ..aws_signing import Credentials
    from ..aws_sns import Receiver
    from .provider import AwsSms, base_url_of

    values = account.values
    credentials = Credentials.of(values, prefix="AWS_SMS")
    return AwsSms(
        name=account.name,
        credentials=credentials,
        region=values.AWS_SMS_REGION,
        base_url=base_url_of(values),
        sender=values.AWS_SMS_SENDER,
        configuration_set=values.AWS_SMS_CONFIGURATION_SET,
        protect_configuration=values.AWS_SMS_PROTECT_CONFIGURATION,
        max_price=values.AWS_SMS_MAX_PRICE,
        receiver=Receiver(
            topics=frozenset(values.AWS_SMS_TOPICS),
            credentials=credentials,
            base_url=values.AWS_SMS_SNS_URL,
            clock=utc_now,
        ),
        clock=utc_now,
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


PROVIDER = ProviderSpec(
    name="aws_sms",
    label="AWS SMS",
    channel=Channel("sms"),
    enabled_by="AWS_SMS_ACCESS_KEY_ID",
    is_configured=lambda account: bool(account.values.AWS_SMS_ACCESS_KEY_ID),
    build=build,
    webhook=WebhookSpec(content="a notification of Amazon SNS"),
    check=check,
    settings=Settings,
)
