"""Push to the recipient's devices."""

from .spec import DEVICE_REACH, ChannelSpec, PartSpec, Role, Shape, Targets

SPEC = ChannelSpec(
    name="push",
    order=20,
    label="Push",
    icon="smartphone",
    targets=Targets.DEVICES,
    reach=DEVICE_REACH,
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
