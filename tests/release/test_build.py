"""What a build packs depends on the commit alone."""

import io
import re
import tarfile
from typing import Any

import yaml

from scripts.release import build
from tests.support.source import ROOT

IMAGE = "registry.example.com/notifyproject:1.0.0"
FILES = {"b/page.html": b"<p>", "a.html": b"", "b.html": b"b"}


def test_archive_has_the_same_bytes_whatever_the_order() -> None:
    first = build.packed("docs", FILES, seconds=1_800_000_000)
    assert build.packed("docs", dict(reversed(FILES.items())), seconds=1_800_000_000) == first
    assert build.packed("docs", FILES, seconds=1_800_000_001) != first
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["docs/a.html", "docs/b.html", "docs/b/page.html"]
        for entry in archive:
            owner = (entry.uid, entry.gid, entry.uname, entry.gname)
            assert (owner, entry.mtime, entry.mode) == ((0, 0, "", ""), 1_800_000_000, 0o644)


def test_published_compose_file_pulls_the_image_and_is_else_the_same() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    published, here = (yaml.safe_load(each) for each in (build.with_image(text, image=IMAGE), text))
    _without_build(here)
    assert published == here
    assert "built" not in build.with_image(text, image=IMAGE).lower()


def _without_build(compose: Any) -> None:
    for service in (compose["x-service"], *compose["services"].values()):
        service.pop("build", None)
        service.pop("pull_policy", None)
        if service.get("image") == build.LOCAL_IMAGE:
            service["image"] = IMAGE


def test_files_of_the_compose_archive_are_all_that_it_mounts() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounted = {
        volume.partition(":")[0].removeprefix("./")
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
        if volume.startswith("./")
    }
    assert mounted | set(
        re.findall(r"docker-compose\S*?\.yml", (ROOT / "docs/guides/deploy.md").read_text())
    ) == set(build.COMPOSE)
