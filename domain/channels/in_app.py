"""The inbox in the client's own application."""

from .spec import INBOX_REACH, ChannelSpec, Shape, Targets

SPEC = ChannelSpec(
    name="in_app",
    order=90,
    label="In-app",
    icon="inbox",
    targets=Targets.INBOX,
    reach=INBOX_REACH,
    shape=Shape.ITEM,
    preview="item",
)
