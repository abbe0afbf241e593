"""Email."""

from ..addresses import EMAIL_ADDRESS
from .spec import ChannelSpec, PartSpec, Reach, Role, Shape, Targets

SPEC = ChannelSpec(
    name="email",
    order=10,
    label="Email",
    icon="mail",
    targets=Targets.ADDRESS,
    address=EMAIL_ADDRESS,
    reach=Reach.by_address(EMAIL_ADDRESS),
    shape=Shape.MAIL,
    preview="mail",
    parts=(
        PartSpec(
            name="email_html",
            role=Role.HTML,
            label="Email HTML",
            help_text="Inserted into the layout. Default: made from the text.",
            rows=9,
        ),
    ),
)
