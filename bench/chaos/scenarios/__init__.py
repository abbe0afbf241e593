"""All scenarios, by number."""

import importlib
import pkgutil

from .. import findings

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
SCENARIOS: dict[int, findings.Scenario] = dict(sorted(findings.SCENARIOS.items()))
