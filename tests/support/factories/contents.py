"""Contents as intake makes them."""

from collections.abc import Sequence
from typing import Any

from domain.content import Content, Recipient
from domain.states import Channel
from notifications.intake.content import compose_content
from notifications.intake.requests import ContentRequest
from notifications.validation import ProblemCollector
from tests.support.factories.records import SHIPPED, request

ADA = Recipient(email="ada@example.com", name="Ada")
PAID = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}


def composed(
    *,
    kind: str = "payment_confirmed",
    data: dict[str, Any] | None = None,
    recipient: Recipient = ADA,
    channels: Sequence[Channel] = (Channel.EMAIL,),
    **content: Any,
) -> tuple[Content, list[tuple[str, str]]]:
    """Return the content of a request, and the pointers and codes of its problems."""
    problems = ProblemCollector()
    result = compose_content(
        request(type=kind, data=PAID if data is None else data, content=ContentRequest(**content)),
        type_config=SHIPPED[kind],
        recipient=recipient,
        channels=channels,
        problems=problems,
    )
    return result, [(p.pointer, p.code) for p in problems.problems]
