"""The variables of a bot of Slack."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """A bot that posts to any channel of its workspace that it is a member of."""

    heading = "Slack bot"
    see = "guides/rooms.md"
    provider = "slack_bot"
    channel = "room"

    SLACK_BOT_TOKEN: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "token of the bot, `xoxb-…`, with the scope `chat:write`",
        empty="rooms of Slack by webhooks only",
    )
    SLACK_BOT_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://slack.com", "address of Slack's Web API"
    )
