"""The variables of AWS End User Messaging SMS."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain

from .. import aws_variables


class Settings(ProviderGroup):
    """An account with AWS End User Messaging, in one region."""

    heading = "AWS SMS"
    see = "guides/channels.md#sms-by-aws"
    provider = "aws_sms"
    channel = "sms"
    rate = 1

    AWS_SMS_REGION: str = declare(
        aws_variables.REGION,
        "eu-west-1",
        "region whose senders send",
        is_asked=True,
    )
    AWS_SMS_ACCESS_KEY_ID: str = declare(
        aws_variables.ACCESS_KEY_ID,
        "",
        "access key of an IAM user that may `sms-voice:SendTextMessage` and "
        "`sns:ConfirmSubscription`",
        empty="no SMS by AWS",
        is_asked=True,
        is_needed=True,
    )
    AWS_SMS_SECRET_ACCESS_KEY: str = declare(
        aws_variables.SECRET_ACCESS_KEY, "", "secret of the access key", is_asked=True
    )
    AWS_SMS_SESSION_TOKEN: str = declare(
        aws_variables.SESSION_TOKEN, "", "session token of a temporary access key"
    )
    AWS_SMS_SENDER: str = declare(
        kinds.text(r"[A-Za-z0-9_:/+-]{1,256}", "a pool, a number, a sender ID, or an ARN of one"),
        "",
        "what sends: the ID of a pool, a number, or a sender ID",
        empty="AWS chooses among those of the account",
        is_asked=True,
    )
    AWS_SMS_CONFIGURATION_SET: str = declare(
        kinds.text(r"[A-Za-z0-9_:/-]{1,256}", "the name or the ARN of a configuration set"),
        "",
        "configuration set that publishes the events",
        empty="no receipts",
        is_asked=True,
    )
    AWS_SMS_TOPICS: tuple[str, ...] = declare(
        aws_variables.TOPICS,
        "",
        "ARNs of the SNS topics whose notifications are accepted",
        empty="AWS's receipts are rejected",
        is_asked=True,
    )
    AWS_SMS_PROTECT_CONFIGURATION: str = declare(
        kinds.text(r"[A-Za-z0-9_:/-]{1,256}", "the ID or the ARN of a protect configuration"),
        "",
        "protect configuration, which has the countries that get SMS",
        empty="that of the configuration set or of the account",
    )
    AWS_SMS_MAX_PRICE: str = declare(
        kinds.text(r"[0-9]{0,2}\.[0-9]{1,5}", "US dollars with a point, such as 0.25"),
        "",
        "US dollars that a text may cost at most; AWS refuses a dearer one",
        empty="no limit",
    )
    AWS_SMS_URL: str = declare(
        kinds.url(Plain.PRIVATE), "", "address of the API", empty="AWS's in the region"
    )
    AWS_SMS_SNS_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "address of SNS, which has the certificates of notifications and confirms subscriptions",
        empty="AWS's in the region of the topic",
    )
