"""``python -m bench.chaos``: run the fault scenarios, or one of them, and print what was found."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from notifyproject.settings.environment import BASE_DIR

from . import page
from .findings import Findings
from .scenario import Scenario
from .scenarios import SCENARIOS


def main() -> int:
    """Run what is asked for; return 1 if any promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    parser.add_argument("--scenario", type=int, choices=SCENARIOS, help="one; all if not given")
    parser.add_argument("--short", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the rows into this table")
    given = parser.parse_args()
    if given.scenario is not None:
        results = {given.scenario: _run(SCENARIOS[given.scenario], short=given.short)}
    else:
        results = {number: _run_apart(number, short=given.short) for number in SCENARIOS}
    if given.json:
        text = json.dumps({str(number): result for number, result in results.items()}, indent=2)
        given.json.write_text(text + "\n")
    if given.page:
        page.update(given.page, results)
    return 0 if all(result["met"] for result in results.values()) else 1


def _run(scenario: Scenario, *, short: bool) -> dict[str, Any]:
    """Run a scenario in this process."""
    sizes = scenario.short if short else scenario.full
    print(f"{scenario.number}: {scenario.injects} {dict(sizes)}", flush=True)
    started = time.monotonic()
    findings = scenario.run(**sizes)
    _show(findings)
    return {
        "sizes": dict(sizes),
        **findings.as_json(),
        "seconds": round(time.monotonic() - started),
    }


def _run_apart(number: int, *, short: bool) -> dict[str, Any]:
    """Run a scenario in a process of its own: each has its own servers, and settings stand once."""
    target = Path(BASE_DIR, ".data", f"chaos-{number}.json")
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench.chaos", "--scenario", str(number)]
    subprocess.run(
        [*command, "--json", str(target), *(["--short"] if short else [])],
        cwd=BASE_DIR,
        check=False,
    )
    if not target.exists():
        return {"met": False, "problem": "the scenario did not come to its end"}
    result: dict[str, Any] = json.loads(target.read_text())[str(number)]
    target.unlink()
    return result


def _show(findings: Findings) -> None:
    verdict = findings.verdict
    print(
        f"   acknowledged {verdict.acknowledged:,}, lost {len(verdict.lost)}, "
        f"double {len(verdict.double)} (and {len(verdict.double_unknown)} after an unknown), "
        f"illegal {len(verdict.illegal)}"
    )
    print(f"   ended as {dict(findings.statuses)}")
    for bound in findings.bounds:
        print(f"   {'ok ' if bound.is_met else 'NOT'} {bound}")
    for problem in findings.problems():
        print(f"   {problem}")
    print(f"   {'met' if findings.is_met else 'NOT MET'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
