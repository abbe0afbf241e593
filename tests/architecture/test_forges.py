"""What forges read: the jobs that run ``.ci/run``, and the templates."""

import re
from typing import Any

import yaml

from tests.support.source import ROOT


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def packages(command: str) -> set[str]:
    return {word for word in command.split("install", 1)[1].split() if not word.startswith("-")}


def test_jobs_run_what_a_merge_must_pass_with_the_packages_that_the_readme_names() -> None:
    readme = (ROOT / "README.md").read_text()
    needed = set().union(
        *map(packages, re.findall(r"^    (apt install .+)$", readme, re.MULTILINE))
    )
    steps = [step["run"] for step in github_steps() if "run" in step]
    gitlab = read(".gitlab-ci.yml")["checks"]
    for commands in (steps, [*gitlab["before_script"], *gitlab["script"]]):
        assert commands[-1] == ".ci/run"
        (installs,) = [
            command for command in commands if "install" in command and "git " in command
        ]
        assert packages(installs) == needed


def test_job_may_read_only() -> None:
    assert read(".github/workflows/checks.yml")["permissions"] == {"contents": "read"}


def test_forges_ask_the_same() -> None:
    for github, gitlab in (
        ("ISSUE_TEMPLATE/defect.md", "issue_templates/Defect.md"),
        ("ISSUE_TEMPLATE/proposal.md", "issue_templates/Proposal.md"),
        ("pull_request_template.md", "merge_request_templates/Default.md"),
    ):
        text = (ROOT / ".github" / github).read_text()
        body = text.split("---\n", 2)[-1].lstrip()
        assert body == (ROOT / ".gitlab" / gitlab).read_text()


def github_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = read(".github/workflows/checks.yml")["jobs"]["checks"]["steps"]
    return steps
