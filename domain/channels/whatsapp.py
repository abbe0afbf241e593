"""WhatsApp."""

from ..addresses import PHONE_NUMBER
from .spec import ChannelSpec, PartSpec, Reach, Role, Shape, Targets

SPEC = ChannelSpec(
    name="whatsapp",
    order=30,
    label="WhatsApp",
    icon="chat",
    targets=Targets.ADDRESS,
    address=PHONE_NUMBER,
    reach=Reach.by_address(PHONE_NUMBER, test_label="Phone number, +351…"),
    shape=Shape.TEXT,
    preview="bubble",
    parts=(
        PartSpec(
            name="whatsapp",
            role=Role.TEXT,
            label="WhatsApp",
            help_text="*Asterisks* for bold. Default: the text.",
        ),
    ),
    has_service_window=True,
    has_identities=True,
    reports_other_spellings=True,
)
