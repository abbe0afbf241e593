"""Every answer matches the API's description, and none is a 500.

Sends a request of a quarter of the operations, others in each run. ``make fuzz`` sends 10,000.
"""

import os
from typing import Any
from unittest.mock import Mock

import pytest

from api.http.problems import INVALID_STATE
from api.notifications import statistics
from tests.fuzz.seed_data import Seeder
from tests.support import samples
from tests.support.clients.api import new_app
from tests.support.clients.inbox import token

IS_LONG = "FUZZ_CASES" in os.environ
CASES = int(os.environ.get("FUZZ_CASES", "60"))
SEED = int(os.environ.get("FUZZ_SEED", samples.SEED))


@pytest.fixture
def asker(db: None, broker: Any) -> Any:
    """Return a fuzzer, whose library takes a second to import."""
    from tests.fuzz.generator import Fuzzer

    app = new_app("app")
    return Fuzzer(key=app.key, token=lambda: token(app), maker=Seeder(app=app))


def test_every_answer_matches_the_description(
    asker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for found in asker.ask(cases=CASES, first_seed=SEED):
        if IS_LONG:
            with capsys.disabled():
                answers = dict(sorted(found.statuses.items()))
                print(f"seed {SEED}: {found.cases} requests, {len(found.faults)} faults, {answers}")
    assert found.faults == {}, f"with FUZZ_SEED={SEED}"
    if IS_LONG:
        assert found.operations >= {operation["operationId"] for operation in asker.described}


def test_undescribed_answer_is_found(asker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {operation.definition.raw["operationId"]: operation for operation in asker.operations}
    asker.operations = [named["getNotificationStats"]]
    for wrong, fault in (
        (Mock(side_effect=KeyError), "500 ServerError"),
        (Mock(side_effect=INVALID_STATE.error()), "409 UndefinedStatusCode"),
        (Mock(return_value={"by": 1}), "200 JsonSchemaError"),
    ):
        monkeypatch.setattr(statistics, "StatisticsView", wrong)
        *_, found = asker.ask(cases=12, first_seed=SEED)
        assert fault in str(list(found.faults))
