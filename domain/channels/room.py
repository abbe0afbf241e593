"""Rooms of a team: channels of Slack, Teams, and Discord, and receivers of webhooks."""

from ..addresses import ROOM
from .spec import ChannelSpec, PartSpec, Reach, Role, Shape, Targets

SPEC = ChannelSpec(
    name="room",
    order=60,
    label="Room",
    icon="forum",
    targets=Targets.ROOM,
    address=ROOM,
    reach=Reach(
        pointer="/recipient/room",
        fields=("recipient.room",),
        refusal="No room: name one, or set the type's.",
        obstacle="No room.",
        resend_obstacle="The room is disabled, or was removed.",
        test_label="Room",
        test_input=ROOM.input_type,
    ),
    shape=Shape.CARD,
    preview="card",
    parts=(
        PartSpec(
            name="room_title",
            role=Role.TITLE,
            label="Room title",
            help_text="Default: the subject.",
            rows=1,
        ),
        PartSpec(
            name="room",
            role=Role.MARKDOWN,
            label="Room",
            help_text="**Bold**, *italics*, `code`, [links](https://…), and lists. "
            "Default: the text.",
        ),
    ),
)
