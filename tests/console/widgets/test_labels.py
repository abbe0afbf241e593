"""Labels: every code, state, channel and risk has one."""

import pytest

from console.widgets import labels
from console.widgets.labels import EXPLANATIONS, RESEND_RISKS
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, NotificationStatus
from notifications.resend.risk import RiskKind

S, F = DeliveryStatus, FailureCode


def test_every_code_and_state_has_words() -> None:
    assert set(EXPLANATIONS) == set(F)
    assert set(labels.STATUS_LABELS) == set(labels.STATUS_COLORS) == set(NotificationStatus)
    assert set(labels.DELIVERY_LABELS) == set(labels.DELIVERY_COLORS) == set(S)
    assert set(labels.CHANNELS) == set(labels.CHANNEL_ICONS) == set(Channel)
    assert set(RESEND_RISKS) == set(RiskKind)


@pytest.mark.parametrize("code", list(F))
def test_an_explanation_reads_as_a_sentence(code: FailureCode) -> None:
    known = EXPLANATIONS[code]
    assert known.meaning[0].islower()
    assert not known.meaning.endswith(".")
    assert known.advice[0].isupper()
    assert known.advice.endswith(".")


def test_a_code_of_another_release_is_no_error() -> None:
    assert labels.explain("brand_new").meaning == "for a reason we have no words for"
    assert labels.code_label("brand_new") == "Brand new"
