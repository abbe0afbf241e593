"""The variables of Amazon SES."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain

from .. import aws_variables


class Settings(ProviderGroup):
    """An account with Amazon SES, in one region."""

    heading = "Amazon SES"
    see = "guides/channels.md#email-by-amazon-ses"
    provider = "ses"
    channel = "email"

    SES_REGION: str = declare(
        aws_variables.REGION,
        "eu-west-1",
        "region whose identities send",
        is_asked=True,
    )
    SES_ACCESS_KEY_ID: str = declare(
        aws_variables.ACCESS_KEY_ID,
        "",
        "access key of an IAM user that may `ses:SendEmail` and `sns:ConfirmSubscription`",
        empty="no mail by Amazon SES",
        is_asked=True,
        is_needed=True,
    )
    SES_SECRET_ACCESS_KEY: str = declare(
        aws_variables.SECRET_ACCESS_KEY, "", "secret of the access key", is_asked=True
    )
    SES_SESSION_TOKEN: str = declare(
        aws_variables.SESSION_TOKEN, "", "session token of a temporary access key"
    )
    SES_CONFIGURATION_SET: str = declare(
        kinds.text(r"[A-Za-z0-9_-]{1,64}", "the name of a configuration set"),
        "",
        "configuration set that publishes the events",
        empty="that of the identity",
        is_asked=True,
    )
    SES_TOPICS: tuple[str, ...] = declare(
        aws_variables.TOPICS,
        "",
        "ARNs of the SNS topics whose notifications are accepted",
        empty="SES's receipts are rejected",
        is_asked=True,
    )
    SES_URL: str = declare(
        kinds.url(Plain.PRIVATE), "", "address of the API", empty="AWS's in the region"
    )
    SES_SNS_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "address of SNS, which has the certificates of notifications and confirms subscriptions",
        empty="AWS's in the region of the topic",
    )
