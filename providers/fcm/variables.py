"""The variables of Firebase."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """The account at Firebase."""

    heading = "Push"
    see = "guides/channels.md#push-by-firebase-cloud-messaging"
    provider = "fcm"
    channel = "push"
    rate = 10_000

    FCM_CREDENTIALS: str = declare(
        kinds.document(),
        "",
        "service account: path of the JSON, or the JSON",
        empty="no push",
        is_asked=True,
    )
    FCM_PROJECT_ID: str = declare(
        kinds.text(), "", "project at Google", empty="the service account's project"
    )
    FCM_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://fcm.googleapis.com", "address of the API"
    )
    SANDBOX_FCM_CREDENTIALS: str = declare(
        kinds.document(), "", "the sandbox's service account", empty="test pushes fail"
    )
