"""Push to the recipient's devices."""

from ..errors import NO_DEVICE
from .spec import ChannelSpec, PartSpec, Reach, Role, Shape, Targets

SPEC = ChannelSpec(
    name="push",
    order=20,
    label="Push",
    icon="smartphone",
    targets=Targets.DEVICES,
    reach=Reach(
        pointer="/user_id",
        fields=("user_id", "recipient.device_ids"),
        refusal="Push requires `user_id` or `recipient.device_ids`.",
        obstacle=NO_DEVICE,
        resend_obstacle="No active device that hasn't rejected it.",
        test_label="Device, or user ID",
        test_input="text",
    ),
    shape=Shape.ALERT,
    preview="phone",
    parts=(
        PartSpec(
            name="push_title",
            role=Role.TITLE,
            label="Push title",
            help_text="Default: the subject.",
            rows=1,
        ),
        PartSpec(
            name="push",
            role=Role.TEXT,
            label="Push",
            help_text="One or two sentences. Default: the text.",
            rows=2,
        ),
    ),
)
