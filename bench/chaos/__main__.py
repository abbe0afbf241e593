"""``python -m bench.chaos``: run all fault scenarios, or one, and print the findings."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack import bytecode

from . import page
from .findings import Findings, Scenario
from .installation import BROKER_VARIABLE, LATENCY_VARIABLE, RABBITMQ
from .scenarios import SCENARIOS


def main() -> int:
    """Run the selected scenarios; return 1 if a guarantee or bound was not met."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__)
    scenario = "one scenario; all by default"
    parser.add_argument("--scenario", type=int, choices=SCENARIOS, help=scenario)
    parser.add_argument("--short", action="store_true", help="small sizes")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="scenarios in parallel")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="update the rows of a table")
    brokers = ("valkey", RABBITMQ)
    parser.add_argument("--broker", choices=brokers, default=brokers[0], help="Celery's broker")
    parser.add_argument(
        "--latency", type=int, default=0, metavar="MS", help="until a provider's response"
    )
    arguments = parser.parse_args()
    os.environ[LATENCY_VARIABLE] = str(arguments.latency)
    os.environ[BROKER_VARIABLE] = arguments.broker
    # A scenario starts hundreds of processes.
    bytecode.enable_cache()
    results: dict[int, dict[str, Any]] = {}
    for number, result in _results(arguments):
        results[number] = result
        # Write after each scenario: an aborted run of hours keeps its results.
        if arguments.json:
            found = {str(key): results[key] for key in sorted(results)}
            arguments.json.write_text(json.dumps(found, indent=2) + "\n")
        if arguments.page:
            page.update(arguments.page, {number: result}, latency=arguments.latency)
    return 0 if all(result["met"] for result in results.values()) else 1


def _results(arguments: argparse.Namespace) -> Iterator[tuple[int, dict[str, Any]]]:
    if arguments.scenario is not None:
        yield arguments.scenario, _run(SCENARIOS[arguments.scenario], short=arguments.short)
        return
    with ThreadPoolExecutor(arguments.at_once) as pool:
        futures = {
            pool.submit(_run_in_subprocess, number, arguments): number for number in SCENARIOS
        }
        try:
            for done in as_completed(futures):
                yield futures[done], done.result()
        finally:
            # Ctrl-C also reaches the running processes, so only the others must be cancelled.
            pool.shutdown(wait=False, cancel_futures=True)


def _run(scenario: Scenario, *, short: bool) -> dict[str, Any]:
    sizes = scenario.short if short else scenario.full
    print(f"{scenario.number}: {scenario.injects} {dict(sizes)}", flush=True)
    started = time.monotonic()
    findings = scenario.run(**sizes)
    _print_findings(findings)
    seconds = round(time.monotonic() - started)
    return {"sizes": dict(sizes), **findings.as_json(), "seconds": seconds}


def _run_in_subprocess(number: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a scenario in its own process, because Django can be set up only once in a process."""
    target = Path(BASE_DIR, ".data", f"chaos-{number}.json")
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench.chaos", "--scenario", str(number)]
    command += ["--json", str(target), *(["--short"] if arguments.short else [])]
    command += ["--broker", arguments.broker, "--latency", str(arguments.latency)]
    ended = subprocess.run(command, cwd=BASE_DIR, check=False, stdout=subprocess.PIPE, text=True)
    # Print the output as a whole: other scenarios may run at the same time.
    print(ended.stdout, end="", flush=True)
    if not target.exists():
        return {"met": False, "problem": "the scenario did not finish"}
    result: dict[str, Any] = json.loads(target.read_text())[str(number)]
    target.unlink()
    return result


def _print_findings(findings: Findings) -> None:
    analysis = findings.analysis
    print(
        f"   acknowledged {analysis.acknowledged:,}, lost {len(analysis.lost)}, "
        f"double {len(analysis.double)} (and {len(analysis.double_unknown)} after an unknown), "
        f"illegal {len(analysis.illegal)}"
    )
    print(f"   ended as {dict(findings.statuses)}")
    for bound in findings.bounds:
        print(f"   {'ok ' if bound.is_met else 'NOT'} {bound}")
    for problem in findings.problems():
        print(f"   {problem}")
    print(f"   {'met' if findings.is_met else 'NOT MET'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
