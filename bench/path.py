"""What one email passes from its POST to its settlement: functions and names, step by step.

The sources are read, nothing is run: no server is needed, and no dependency but Python. A step has
the functions that its entry can reach before the entries of other steps, through every call and
every function that is passed on, in each thread. What only errors, other channels, or rarer
features reach counts, too. Of these, those are listed that take or return the email in one of its
forms. Calls of objects are followed by the annotations.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "access",
    "api",
    "callbacks",
    "console",
    "delivery",
    "devices",
    "domain",
    "monitoring",
    "notifications",
    "notifyproject",
    "privacy",
    "providers",
    "recipients",
    "tasks",
)
VOCABULARY = ("domain.", "notifyproject.")
"""Values, states, and infrastructure, whose functions do not count."""
STEPS: Mapping[str, str] = {
    "POST": "api.notifications.views.create_notification",
    "prepare": "notifications.intake.preparation.prepare",
    "store": "notifications.store.acceptance.accept",
    "enqueue": "notifications.queueing.fair_queue.enqueue_wakeups",
    "wake-up": "tasks.tasks.handle_wakeup",
    "claim": "notifications.store.leases.claim",
    "check": "delivery.eligibility.filter_eligible",
    "resolve targets": "delivery.targets.resolve_targets",
    "render": "delivery.rendering.render_batch",
    "send loop": "delivery.send_loop.SendLoop.run",
    "route": "delivery.routing.choose_routes",
    "start": "notifications.store.leases.start",
    "send": "delivery.sending.InFlight.submit",
    "record answers": "delivery.settlement.record_answers",
    "settle": "notifications.store.leases.settle",
}
"""The entry of each step, in the order of an email."""
FORMS = (
    "notifications.intake.requests.NotificationRequest",
    "notifications.intake.preparation.Prepared",
    "notifications.store.new_notifications.NewNotification",
    "notifications.store.acceptance.Accepted",
    "notifications.intake.acceptance.Acceptance",
    "notifications.store.claims.ClaimedDelivery",
    "delivery.sending.PreparedDelivery",
    "providers.contract.SendRequest",
    "providers.contract.SendResult",
    "delivery.results.TargetResult",
    "notifications.store.claims.Settlement",
)
"""The names of one email on its way, in their order."""
IMPLEMENTATIONS = {
    "providers.contract.Provider": "providers.sendgrid.provider.SendGrid",
    "providers.contract.BatchProvider": "providers.sendgrid.provider.SendGrid",
}
CALLER, LOOP, POOL = "calling thread", "event loop", "thread pool"
THREADS = {"event_loop.run": LOOP, "event_loop.call": LOOP, "event_loop.run_blocking": POOL}
"""Where the arguments of these functions run."""


@dataclass(frozen=True)
class Module:
    """A module: what its names mean, as dotted names, and its functions and classes."""

    name: str
    names: Mapping[str, str]
    functions: Mapping[str, "Function"]
    classes: Mapping[str, ast.ClassDef]


@dataclass(frozen=True)
class Function:
    """A function or method, by its dotted name."""

    name: str
    module: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str = ""
    """The dotted name of the class of a method."""


@dataclass
class Step:
    """The functions of a step: the threads of each, and the forms in which it has the email."""

    name: str
    threads: dict[str, set[str]] = field(default_factory=dict)
    forms: dict[str, list[str]] = field(default_factory=dict)
    """Of the functions with a form only."""

    def __str__(self) -> str:
        names = [form for form in FORMS if any(form in some for some in self.forms.values())]
        head = f"{self.name}: {len(self.forms)} functions have the email, of {len(self.threads)}"
        lines = [f"{head}; as {', '.join(map(_last, names)) or 'a document'}"]
        for name, forms in self.forms.items():
            thread = ", ".join(sorted(self.threads[name]))
            lines.append(f"    {name} ({thread}): {', '.join(map(_last, forms))}")
        return "\n".join(lines)


class Sources:
    """The functions and classes of the service's packages, by dotted name."""

    def __init__(self) -> None:
        self.modules = {
            module.name: module
            for package in PACKAGES
            for path in sorted((ROOT / package).rglob("*.py"))
            if "migrations" not in path.parts
            for module in [_read_module(path)]
        }
        self.functions = {
            f.name: f for module in self.modules.values() for f in module.functions.values()
        }

    def full_name(self, module: str, dotted: str) -> str:
        """Return what a name means in a module, through re-exports; empty if unknown."""
        first, _, rest = dotted.partition(".")
        known = self.modules[module].names.get(first, "")
        found = f"{known}.{rest}" if rest and known else known
        for _ in range(3):
            owner, _, name = found.rpartition(".")
            if owner in self.modules and found not in self.functions:
                found = self.modules[owner].names.get(name, found)
        return found

    def class_of(self, dotted: str) -> tuple[str, ast.ClassDef] | None:
        """Return a class with the name of its module."""
        dotted = IMPLEMENTATIONS.get(dotted, dotted)
        owner, _, name = dotted.rpartition(".")
        found = self.modules[owner].classes.get(name) if owner in self.modules else None
        return (owner, found) if found is not None else None

    def types_in(self, module: str, annotation: ast.expr | None) -> list[str]:
        """Return the service's classes that an annotation names, the innermost last."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        nodes = ast.walk(annotation) if annotation is not None else ()
        texts = (ast.unparse(n) for n in nodes if isinstance(n, ast.Name | ast.Attribute))
        found = (self.full_name(module, text) for text in texts)
        return [name for name in found if self.class_of(name)]

    def forms_of(self, function: Function) -> list[str]:
        """Return the forms of the email that a function takes or returns."""
        given = function.node.args
        annotations = [argument.annotation for argument in (*given.args, *given.kwonlyargs)]
        annotations.append(function.node.returns)
        found = {
            k for annotation in annotations for k in self.types_in(function.module, annotation)
        }
        return [form for form in FORMS if form in found or form == function.owner]

    def member(self, owner: str, name: str) -> tuple[str, list[str]]:
        """Return a method of a class, and the classes of a field's or property's annotation."""
        found = self.class_of(owner)
        if found is None:
            return "", []
        module, node = found
        if method := self.functions.get(f"{module}.{node.name}.{name}"):
            return method.name, self.types_in(module, method.node.returns)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == name:
                return "", self.types_in(module, statement.annotation)
        made = self.functions.get(f"{module}.{node.name}.__init__")
        if made is not None:
            variables = Reader(self, made).variables
            if f"self.{name}" in variables:
                return "", variables[f"self.{name}"]
        bases = (self.full_name(module, ast.unparse(base)) for base in node.bases)
        return next(filter(any, (self.member(base, name) for base in bases)), ("", []))


class Reader:
    """Reads one function: the functions that it calls or passes on, by what is annotated."""

    def __init__(self, sources: Sources, function: Function) -> None:
        self.sources, self.function = sources, function
        self.variables: dict[str, list[str]] = {}
        arguments = function.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.variables[argument.arg] = sources.types_in(function.module, argument.annotation)
        if function.owner:
            self.variables["self"] = self.variables["cls"] = [function.owner]
        # Twice, since a comprehension's variable stands behind its use.
        for _ in range(2):
            for node in ast.walk(function.node):
                self._assign(node)

    def references(self) -> Iterator[tuple[str, str]]:
        """Yield each referenced function, and the thread to which it is passed, or nothing."""
        passed: dict[int, str] = {}
        for node in ast.walk(self.function.node):
            if isinstance(node, ast.Call):
                text = ast.unparse(node.func)
                thread = next((THREADS[ending] for ending in THREADS if text.endswith(ending)), "")
                inner = (inner_node for argument in node.args for inner_node in ast.walk(argument))
                passed |= {id(inner_node): thread for inner_node in inner if thread}
        for node in ast.walk(self.function.node):
            if isinstance(node, ast.Name | ast.Attribute):
                yield from ((name, passed.get(id(node), "")) for name in self._functions(node))

    def _functions(self, node: ast.expr) -> list[str]:
        name = self.sources.full_name(self.function.module, ast.unparse(node))
        if name in self.sources.functions:
            return [name]
        if self.sources.class_of(name):
            return [self.sources.member(name, part)[0] for part in ("__init__", "__post_init__")]
        if isinstance(node, ast.Attribute):
            return [self.sources.member(type_, node.attr)[0] for type_ in self._types(node.value)]
        return []

    def _types(self, node: ast.expr) -> list[str]:
        """Return the classes of an expression, or of the items of a container."""
        text = ast.unparse(node)
        if text in self.variables:
            return self.variables[text]
        name = self.sources.full_name(self.function.module, text)
        if self.sources.class_of(name):
            return [name]
        if isinstance(node, ast.Call):
            found = self.sources.functions.get(
                self.sources.full_name(self.function.module, ast.unparse(node.func))
            )
            if found is not None:
                return self.sources.types_in(found.module, found.node.returns)
            return self._types(node.func)
        if isinstance(node, ast.Attribute):
            members = [self.sources.member(type_, node.attr) for type_ in self._types(node.value)]
            return [kind for _, kinds in members for kind in kinds]
        inner = {ast.Subscript: "value", ast.Await: "value", ast.Starred: "value"}.get(type(node))
        return self._types(getattr(node, inner)) if inner else []

    def _assign(self, node: ast.AST) -> None:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            kinds = self.sources.types_in(self.function.module, node.annotation)
            self.variables[ast.unparse(node.target)] = kinds
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            pairs = [(node.target, node.iter)]
        elif isinstance(node, ast.NamedExpr):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            pairs = [(node.optional_vars, node.context_expr)]
        for target, value in pairs:
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            for assigned in targets:
                if kinds := self._types(value):
                    self.variables[ast.unparse(assigned)] = kinds


def steps_of_an_email() -> list[Step]:
    """Return the steps of an email in their order."""
    sources = Sources()
    return [_read_step(sources, name, entry) for name, entry in STEPS.items()]


def _read_step(sources: Sources, name: str, entry: str) -> Step:
    step, entries = Step(name), frozenset(STEPS.values())
    waiting = [(entry, CALLER)]
    while waiting:
        current, thread = waiting.pop()
        function = sources.functions[current]
        thread = LOOP if isinstance(function.node, ast.AsyncFunctionDef) else thread
        if thread in step.threads.setdefault(current, set()):
            continue
        step.threads[current].add(thread)
        if forms := sources.forms_of(function):
            step.forms[current] = forms
        for reached, other_thread in Reader(sources, function).references():
            if reached and reached not in entries and not reached.startswith(VOCABULARY):
                waiting.append((reached, other_thread or thread))
    return step


def report() -> str:
    """Return the steps as text, and their sums."""
    steps = steps_of_an_email()
    functions: dict[str, set[str]] = {}
    for step in steps:
        for name, threads in step.threads.items():
            functions.setdefault(name, set()).update(threads)
    forms = {name for step in steps for name in step.forms}
    counts = [
        f"{sum(thread in threads for threads in functions.values())} in the {thread}"
        for thread in (CALLER, LOOP, POOL)
    ]
    total = f"{len(forms)} functions have the email, of {len(functions)}: {', '.join(counts)}"
    return "\n".join([*map(str, steps), f"In all: {total}. The email has {len(FORMS)} names."])


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _read_module(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    package = ".".join(parts[:-1])
    tree = ast.parse(path.read_text())
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops = {alias.name.partition(".")[0] for alias in node.names if not alias.asname}
            names |= {top: top for top in tops}
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            source = ".".join([*above, node.module or ""]).strip(".") if node.level else node.module
            names |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
    functions, classes = {}, {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[node.name] = Function(f"{name}.{node.name}", name, node)
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = node
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    full, owner = f"{name}.{node.name}.{statement.name}", f"{name}.{node.name}"
                    functions[f"{node.name}.{statement.name}"] = Function(
                        full, name, statement, owner
                    )
    names |= {
        definition: f"{name}.{definition}"
        for definition in (*functions, *classes)
        if "." not in definition
    }
    return Module(name, names, functions, classes)
