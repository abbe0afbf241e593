"""``notify --profile``, and ``notify promote`` between two servers."""

import io
import json
import shutil
import sys
from pathlib import Path

import httpx
import pytest
from notifyproject_client.cli import command
from notifyproject_client.cli.profiles import Profile, ProfileError, find_profile

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.wsgi import application
from tests.support.clients.api import App, new_app
from tests.support.tables import each_case

KEY = "ntf_secret"
URL = "https://notify.example.com"
TYPES, DESIGN = "/api/v1/type-files", "/api/v1/design"


def write(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "profiles.toml"
    path.write_text(text)
    path.chmod(mode)
    return {"NOTIFY_PROFILES": str(path)}


def command_of(program: str) -> str:
    return f"[one]\nurl = '{URL}'\nkey_command = ['{sys.executable}', '-c', '''{program}''']\n"


def test_profile_has_a_key_or_a_command_that_prints_it(tmp_path: Path) -> None:
    found = Profile(URL, KEY)
    environment = write(tmp_path, f"[one]\nurl = '{URL}'\nkey = '{KEY}'\n")
    assert find_profile("one", environment=environment) == found
    assert KEY not in repr(found)
    environment = write(tmp_path, command_of(f'print("{KEY}")'))
    assert find_profile("one", environment=environment) == found


@each_case(
    "text, mode, reason",
    [
        (f"[one]\nurl = '{URL}'\nkey = '{KEY}'\n", 0o644, "chmod 600"),
        (f"[one]\nurl = '{URL}'\nkey = '{KEY}'\n", 0o620, "chmod 600"),
        (f"[two]\nurl = '{URL}'\nkey = '{KEY}'\n", 0o600, "no profile one"),
        ("one = 1\n", 0o600, "no profile one"),
        (f"[one]\nurl = '{URL}'\n", 0o600, "one needs url, and key or key_command"),
        (f"[one]\nkey = '{KEY}'\n", 0o600, "one needs url, and key or key_command"),
        (f"[one]\nurl = '{URL}'\nkey = '{KEY}'\nkeys = 1\n", 0o600, "No more"),
        (f"[one]\nurl = '{URL}'\nkey_command = []\n", 0o600, "one needs url"),
        (f"[one\nurl = '{URL}'\n", 0o600, "profiles.toml"),
        (command_of(f'import sys; print("{KEY}"); sys.exit(1)'), 0o600, "CalledProcessError"),
        (command_of("pass"), 0o600, "printed nothing"),
        (f"[one]\nurl = '{URL}'\nkey_command = ['/nowhere/x']\n", 0o600, "FileNotFoundError"),
        (f"[one]\nurl = '{URL}'\nkey_command = [\"\\u0000\"]\n", 0o600, "ValueError"),
    ],
)  # fmt: skip
def test_profile_that_cannot_be_used_says_why_without_the_key(
    tmp_path: Path, text: str, mode: int, reason: str
) -> None:
    with pytest.raises(ProfileError, match=reason) as raised:
        find_profile("one", environment=write(tmp_path, text, mode))
    assert KEY not in str(raised.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"none\.toml"):
        find_profile("one", environment={"NOTIFY_PROFILES": str(tmp_path / "none.toml")})


class Servers:
    """The service as production, and its types as they were, and others, as staging."""

    def __init__(self, folder: Path, app: App) -> None:
        self.folder, self._key = folder, app.key
        self._environment = write(
            folder,
            f"[staging]\nurl = 'http://staging'\nkey = '{app.key}'\n"
            f"[production]\nurl = 'http://production'\nkey = '{app.key}'\n",
        )
        self._service = httpx.WSGITransport(app=application)
        self._staging: dict[str, bytes] = {}
        self.transport = httpx.MockTransport(self._answer)
        self.out = ""

    def _answer(self, request: httpx.Request) -> httpx.Response:
        is_staging = request.url.host == "staging"
        request.headers["Host"] = "testserver"
        answer = self._service.handle_request(request)
        content = answer.read()
        if is_staging:
            content = self._staging.get(request.url.path, content)
        return httpx.Response(answer.status_code, content=content)

    def keep_as_staging(self) -> None:
        """Let staging have the types that there are now."""
        with httpx.Client(transport=self.transport, base_url="http://staging") as http:
            headers = {"Authorization": f"Bearer {self._key}"}
            for path in (f"{TYPES}?limit=100", DESIGN):
                answer = http.get(path, headers=headers)
                self._staging[answer.request.url.path] = answer.content

    def change_staging(self, description: str) -> None:
        """Let staging have another description of its types."""
        page = json.loads(self._staging[TYPES])
        for each in page["results"]:
            each["definition"]["description"] = description
        self._staging[TYPES] = json.dumps(page).encode()

    def empty_staging(self) -> None:
        """Let staging have no types."""
        self._staging[TYPES] = json.dumps({"results": [], "next": None}).encode()

    def __call__(self, *words: str, **environment: str) -> int:
        out, err = io.StringIO(), io.StringIO()
        code = command.run(
            [*words, "--types", str(self.folder / "notify" / "types")],
            environment=self._environment | environment,
            out=out,
            err=err,
            transport=self.transport,
        )
        self.out = out.getvalue() + err.getvalue()
        return code


PROMOTE = ("promote", "--from", "staging", "--to", "production", "order_shipped")


@pytest.fixture
def servers(tmp_path: Path, app: App) -> Servers:
    """Two servers, of which staging has another description of one type."""
    servers = Servers(tmp_path, app)
    assert servers("pull", "--profile", "production") == 0, servers.out
    before = description()
    types.define_type("order_shipped", {"description": "New."}, now=utc_now())
    servers.keep_as_staging()
    types.define_type("order_shipped", {"description": before}, now=utc_now())
    return servers


def description() -> str:
    document = types.read_type("order_shipped")
    assert document is not None
    return document["description"]


def test_promotion_publishes_what_the_other_server_has(servers: Servers) -> None:
    assert (servers(*PROMOTE, "--dry-run"), servers.out) == (
        0,
        "order_shipped: would be changed\n",
    )
    assert description() != "New."
    assert (servers(*PROMOTE), servers.out) == (0, "order_shipped: changed and published\n")
    assert description() == "New."
    assert (servers(*PROMOTE), servers.out) == (0, "")


def test_promoted_type_is_not_undone_by_the_files_that_lack_it(servers: Servers) -> None:
    assert servers(*PROMOTE) == 0
    assert servers("push", "--publish", "--profile", "production", "order_shipped") == 3
    assert description() == "New."
    assert servers("pull", "--profile", "production", "order_shipped") == 0
    assert servers.out == "order_shipped: pulled\n"
    assert servers("push", "--publish", "--profile", "production", "order_shipped") == 0
    assert description() == "New."


def test_promotion_follows_a_promotion_without_a_pull(servers: Servers) -> None:
    assert servers(*PROMOTE) == 0
    servers.change_staging("Newer.")
    assert servers(*PROMOTE) == 0
    assert description() == "Newer."


def test_promotion_needs_no_folder(servers: Servers) -> None:
    shutil.rmtree(servers.folder / "notify")
    assert servers(*PROMOTE) == command.CONFLICT
    assert servers(*PROMOTE, "--force") == 0
    assert (servers(*PROMOTE), servers.out) == (0, "")


def test_promotion_stops_at_a_type_that_has_moved_and_shows_both(servers: Servers) -> None:
    types.define_type("order_shipped", {"description": "By staff."}, now=utc_now())
    assert servers(*PROMOTE) == command.CONFLICT
    assert "-description: By staff.\n+description: New.\n" in servers.out
    assert "+++ staging/order_shipped/type.yaml" in servers.out
    assert "--force publishes what staging has" in servers.out
    assert description() == "By staff."
    assert servers(*PROMOTE, "--force") == 0
    assert description() == "New."


def test_promotion_of_nothing_names_the_server_that_lacks_it(servers: Servers) -> None:
    servers.empty_staging()
    promote = PROMOTE[:-1]
    assert servers(*promote) == command.INVALID_USE
    assert servers.out == "There are no types on staging.\n"
    assert servers(*PROMOTE) == command.INVALID_USE
    assert servers.out == "There is no type order_shipped.\n"


def test_profile_of_the_environment_is_the_default(servers: Servers) -> None:
    assert servers("pull", "order_shipped", NOTIFY_PROFILE="staging") == command.CONFLICT
    assert servers("pull", "order_shipped", NOTIFY_PROFILE="production") == 0
    assert servers("pull", "--profile", "nope", NOTIFY_PROFILE="staging") == command.INVALID_USE
    assert "There is no profile nope" in servers.out


def test_what_needs_no_server_needs_no_profile(servers: Servers) -> None:
    assert servers("lint", "order_shipped", NOTIFY_PROFILE="nope") == 0
    data = servers.folder / "data.json"
    data.write_text('{"order": 1}')
    (servers.folder / "notify" / "types" / "alert" / "type.yaml").write_text("name: [")
    assert (servers("validate", "order_shipped", str(data)), servers.out) == (0, "")
    assert servers("validate", "alert", str(data)) == command.INVALID_USE
    assert servers("validate", "../alert", str(data)) == command.INVALID_USE


def test_first_type_is_accepted_as_it_is(servers: Servers) -> None:
    assert servers("init") == 0
    assert servers("init") == command.INVALID_USE
    assert "There already is such a type." in servers.out
    assert servers("init", "../x") == command.INVALID_USE
    assert (servers("lint", "welcome"), servers.out) == (0, "")
    assert servers("push", "--publish", "--profile", "production", "welcome") == 0, servers.out
    assert servers.out == "welcome: created and published\n"


def test_key_needs_the_scope_of_templates(tmp_path: Path, db: None) -> None:
    weak = Servers(tmp_path, new_app("weak", Scope.NOTIFICATIONS_READ))
    assert weak("pull", "--profile", "production") == command.INVALID_USE
    assert "http://production: 403" in weak.out
