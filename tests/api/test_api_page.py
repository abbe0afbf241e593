"""docs/reference/api.md lists every problem type of the catalogue."""

import re

from api.http import problems
from api.http.problems import ProblemType
from notifyproject.settings.environment import BASE_DIR

PAGE = (BASE_DIR / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
CATALOGUE = {one.code: one for one in vars(problems).values() if isinstance(one, ProblemType)}


def test_every_problem_type_is_listed_with_its_status_and_title() -> None:
    listed = {
        code: (int(status), title)
        for codes, status, title in re.findall(
            r"^\| (`[a-z0-9_`, ]+`) \| (\d{3}) \| ([^|;]+?)(?:;[^|]*)? \|$", PAGE, re.MULTILINE
        )
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert listed == {code: (one.status, one.title) for code, one in CATALOGUE.items()}
