"""The README's ten lines of Python, executed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.support.clients.api import App
from tests.support.waiting import until

HERE = "http://127.0.0.1:8000"


@pytest.mark.usefixtures("worker")
def test_ten_lines_of_python_send_a_notification(
    app: App,
    live_server: Any,
    received: Callable[[str], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = Path(settings.BASE_DIR, "README.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert lines.count("\n") == 10
    assert HERE in lines
    (tmp_path / ".data").mkdir()
    credentials = json.dumps({"api_key": app.key})
    (tmp_path / ".data" / "local-credentials.json").write_text(credentials)
    monkeypatch.chdir(tmp_path)

    names: dict[str, Any] = {}
    exec(compile(lines.replace(HERE, live_server.url), "README.md", "exec"), names)

    sent = names["sent"]
    assert (sent.status, sent.type_) == ("queued", "payment_confirmed")
    assert until(lambda: received("ada@example.com"))
    assert app.get(f"/notifications/{sent.id}").json()["data"] == sent.data.to_dict()
