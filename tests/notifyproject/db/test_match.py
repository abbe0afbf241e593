"""A raw match in a queryset: its pipeline and index."""

from typing import Any

import pytest
from django.db import NotSupportedError
from django.db.models import Q

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.models import Notification
from notifyproject.db.match import Match
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")
FAILED_EMAIL = {"delivery": {"$elemMatch": {"channel": "email", "status": "failed"}}}


def pipeline(queryset: Any) -> list[dict[str, Any]]:
    compiler = queryset.query.get_compiler("default")
    compiler.pre_sql_setup()
    return compiler.build_query(compiler.columns).get_pipeline()


def test_match_is_the_pipelines_first_stage() -> None:
    stages = pipeline(Notification.objects.filter(Match(FAILED_EMAIL)).order_by("-id"))
    assert stages[0] == {"$match": FAILED_EMAIL}
    assert stages[1]["$sort"] == {"_id": -1}


def test_match_combines_with_other_conditions() -> None:
    queryset = Notification.objects.filter(Match(FAILED_EMAIL) & Q(type="a")).exclude(
        Match({"type": "b"})
    )
    assert pipeline(queryset)[0] == {
        "$match": {"$and": [FAILED_EMAIL, {"type": "a"}, {"$nor": [{"type": "b"}]}]}
    }


def test_elem_match_needs_every_condition_in_one_element() -> None:
    failed = factories.settled(DeliveryStatus.FAILED)
    sent_and_failed = factories.accepted(channels=(Channel.EMAIL, Channel.IN_APP))
    found = Notification.objects.filter(Match(FAILED_EMAIL))
    assert [n.pk for n in found] == [failed["_id"]]
    delivered = {"delivery": {"$elemMatch": {"channel": "in_app", "status": "delivered"}}}
    assert Notification.objects.get(Match(delivered)).pk == sent_and_failed["_id"]
    assert Notification.objects.filter(Match(delivered)).count() == 1


def test_elem_match_uses_the_delivery_index() -> None:
    factories.settled(DeliveryStatus.FAILED)
    plan = Notification.objects.filter(Match(FAILED_EMAIL)).order_by().explain()
    assert "ntf_delivery_status" in plan
    assert "COLLSCAN" not in plan


def test_match_can_name_an_index() -> None:
    failed = factories.settled(DeliveryStatus.FAILED)
    with plans("notifications") as found:
        by_time = Match(FAILED_EMAIL, index="ntf_updated")
        assert [n.pk for n in Notification.objects.filter(by_time, type="a")] == []
        assert Notification.objects.get(Q(by_time), pk=failed["_id"]).pk == failed["_id"]
        assert Notification.objects.filter(Match(FAILED_EMAIL)).count() == 1
    named, nested, free = (plan.summary for plan in found)
    assert named == nested == "IXSCAN { updated_at: 1 }"
    assert named != free


def test_equal_matches_are_equal() -> None:
    assert Match(FAILED_EMAIL) == Match(FAILED_EMAIL)
    assert Match(FAILED_EMAIL) != Match({"type": "a"})
    assert Match(FAILED_EMAIL) != Match(FAILED_EMAIL, index="ntf_failed")
    assert hash(Match(FAILED_EMAIL)) == hash(Match(FAILED_EMAIL))


def test_match_is_no_expression() -> None:
    with pytest.raises(NotSupportedError, match=r"filter\(\) or exclude\(\)"):
        Match(FAILED_EMAIL).as_mql(None, None, as_expr=True)
