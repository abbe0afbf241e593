"""SMS."""

from ..addresses import PHONE_NUMBER
from .spec import ChannelSpec, PartSpec, Reach, Role, Shape, Targets

SPEC = ChannelSpec(
    name="sms",
    order=35,
    label="SMS",
    icon="sms",
    targets=Targets.ADDRESS,
    address=PHONE_NUMBER,
    reach=Reach.by_address(PHONE_NUMBER, test_label="Phone number, +351…"),
    shape=Shape.PARTS,
    preview="parts",
    parts=(
        PartSpec(
            name="sms",
            role=Role.TEXT,
            label="SMS",
            help_text="Short: each part of a text is paid for. Default: the text.",
        ),
    ),
    is_optional=True,
    # The provider refuses any other message to a number that sent STOP.
    opt_out_is_total=True,
)
