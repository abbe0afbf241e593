"""Random requests, generated from the OpenAPI document and sent in process.

Half of the requests are valid. Some contain IDs of existing objects, which were created from the
document's examples.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.http.problems import MEDIA_TYPE
from tests.fuzz.seed_data import NAMED, Seeder

EACH = 15
"""Maximum cases of an operation before the next operation's turn."""
TAKES_WRONG = frozenset({"createNotifications", "streamInbox"})
"""Operations that don't refuse an invalid request: bulk create, and another process's stream."""
KNOWN = (True, True, False)
"""How often a request names an existing object."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CONFIG = SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}})
"""Authentication is tested in tests/api/test_isolation.py."""
QUIET = settings(
    phases=[Phase.generate], deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@dataclass(kw_only=True)
class Found:
    """The statuses, answers, and faults that were found so far."""

    statuses: Counter[int] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    """By operation and status."""
    faults: dict[str, str] = field(default_factory=dict)
    """Requests with a wrong answer, by fault."""

    @property
    def operations(self) -> set[str]:
        return {answer.partition(" ")[0] for answer in self.answers}

    @property
    def cases(self) -> int:
        return self.statuses.total()


@dataclass(kw_only=True)
class Fuzzer:
    """Calls every operation: with a key of every scope, or with an inbox token."""

    key: str = field(repr=False)
    token: Callable[[], str] = field(repr=False)
    """Returns a new token, because requests may revoke the previous one."""
    maker: Seeder
    found: Found = field(default_factory=Found)

    def __post_init__(self) -> None:
        app = get_wsgi_application()
        self.schema = schemathesis.openapi.from_wsgi("/api/schema", app, config=CONFIG)
        operations = [operation.ok() for operation in self.schema.get_all_operations()]
        self.operations = sorted(operations, key=lambda operation: operation.method == "delete")
        self.described = [operation.definition.raw for operation in self.operations]

    def ask(self, *, cases: int, first_seed: int) -> Iterator[Found]:
        """Send ``cases`` requests. Yield the results after each round of all operations."""
        turns = [*product(GenerationMode, self.operations)]
        each = max(1, min(EACH, cases // len(turns)))
        # Too few for a round: some operations, in their order.
        step = max(1, len(turns) // cases)
        turns = turns[first_seed % step :: step]
        for number in count(first_seed):
            self.known = self.maker.everything()
            for mode, operation in turns:
                self._ask_one(operation, mode, most=each, number=number)
                if self.found.cases >= cases:
                    yield self.found
                    return
            yield self.found

    def _ask_one(self, operation: Any, mode: GenerationMode, *, most: int, number: int) -> None:
        cases = operation.as_strategy(generation_mode=mode)
        test = given(cases, st.sampled_from(KNOWN), st.integers(0, 30))(self._send)
        # A request without parameters or a body has no invalid case.
        with suppress(Unsatisfiable):
            settings(QUIET, max_examples=most)(seed(number)(test))()

    def _send(self, case: Case[Any], is_known: bool, which: int) -> None:
        described = case.operation.definition.raw
        if is_known:
            for parameters in (case.path_parameters or {}, case.query or {}):
                parameters |= {n: self._named(n, case) for n in parameters if n in self.known}
            _graft(case, described, which)
        is_inbox = described["security"] == [{"inboxToken": []}]
        case.headers["Authorization"] = f"Bearer {self.token() if is_inbox else self.key}"
        response = case.call()
        name = described["operationId"]
        self.found.statuses[response.status_code] += 1
        self.found.answers[f"{name} {response.status_code}"] += 1
        more = [] if is_known or name in TAKES_WRONG else [negative_data_rejection]
        try:
            case.validate_response(response, checks=[*CHECKS, _a_proper_problem, *more])
        except FailureGroup as failures:
            for failure in failures.exceptions:
                fault = f"{name} {response.status_code} {type(failure).__name__}: {failure}"
                self.found.faults.setdefault(fault, case.as_curl_command())

    def _named(self, parameter: str, case: Case[Any]) -> str:
        """Return the ID of an existing object, or of a new one if the request may change it."""
        if case.method != "GET" and parameter in NAMED:
            return self.maker.another(parameter)
        return self.known[parameter]


def _graft(case: Case[Any], described: Mapping[str, Any], which: int) -> None:
    """Replace the body by the example's body with one field of the random body."""
    if isinstance(case.body, dict) and case.body:
        content = described["requestBody"]["content"]["application/json"]
        name = sorted(case.body)[which % len(case.body)]
        case.body = {**content["examples"]["request"]["value"], name: case.body[name]}


def _a_proper_problem(_context: Any, response: Any, _case: Case[Any]) -> None:
    """Fail for an error that is not a problem document."""
    if response.status_code >= 400:
        assert response.headers["content-type"] == [MEDIA_TYPE]
        assert response.json()["status"] == response.status_code
