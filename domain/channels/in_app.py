"""The inbox in the client's own application."""

from .spec import ChannelSpec, Reach, Shape, Targets

SPEC = ChannelSpec(
    name="in_app",
    order=90,
    label="In-app",
    icon="inbox",
    targets=Targets.INBOX,
    reach=Reach(
        pointer="/user_id",
        fields=("user_id",),
        refusal="In-app requires `user_id`.",
        obstacle="The recipient has no inbox.",
        resend_obstacle="The recipient has no inbox.",
        test_label="User ID",
        test_input="text",
    ),
    shape=Shape.ITEM,
    preview="item",
)
