// The command palette (Ctrl K): a field, and a list whose current result Enter opens. The theme opens
// and closes the palette, and htmx requests the results.
addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("search-input-command");
  const results = document.getElementById("command-results");
  const dialog = field?.closest("[x-data]");
  if (!dialog || !results) return;
  const status = document.createElement("p");
  let opener = null;
  let opensFirst = false;

  function describe() {
    const icon = document.getElementById("command-submit");
    icon?.setAttribute("aria-hidden", "true");
    if (icon) icon.tabIndex = -1;
    status.className = "sr-only";
    status.setAttribute("role", "status");
    dialog.append(status);
    const attributes = {
      role: "dialog", "aria-modal": "true", "aria-label": "Search",
    };
    for (const [name, value] of Object.entries(attributes)) dialog.setAttribute(name, value);
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-label", "Search pages, recipients, and notifications");
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-expanded", "false");
  }

  const options = () => [...results.querySelectorAll("[role=option]")];
  const current = () => results.querySelector("[aria-selected=true]");

  function select(option) {
    current()?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", option.id);
  }

  function showResults() {
    const found = options();
    field.setAttribute("aria-expanded", String(found.length > 0));
    field.removeAttribute("aria-activedescendant");
    if (found.length > 0) {
      field.setAttribute("aria-controls", "command-options");
      select(found[0]);
      status.textContent = found.length === 1 ? "1 result" : `${found.length} results`;
    } else {
      field.removeAttribute("aria-controls");
      status.textContent = field.value.trim() ? "No results" : "";
    }
    if (opensFirst) open();
  }

  // A text that was just typed has no results yet: its first one opens once it is there.
  function open(inNewTab = false) {
    const shown = document.getElementById("command-results-list")?.dataset.text;
    opensFirst = shown !== field.value.trim();
    if (opensFirst || !current()) return;
    if (inNewTab) window.open(current().href, "_blank", "noopener");
    else location.assign(current().href);
  }

  function move(step) {
    const found = options();
    const next = found[found.indexOf(current()) + step];
    if (next) select(next);
  }

  const keys = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: (event) => open(event.metaKey || event.ctrlKey),
    // The field is the only control of the palette, which covers the page.
    Tab: () => {},
  };
  field.addEventListener("keydown", (event) => {
    const handle = keys[event.key];
    if (!handle) return;
    event.preventDefault();
    // The theme has handlers of its own for these keys.
    event.stopImmediatePropagation();
    handle(event);
  }, { capture: true });
  field.addEventListener("input", () => { opensFirst = false; });
  field.addEventListener("focus", (event) => { opener = event.relatedTarget ?? opener; });

  // The theme focuses the field 20 ms after it opens. If the browser renders later than that, the
  // field isn't visible yet and can't take the focus.
  new IntersectionObserver(([seen]) => {
    if (seen.isIntersecting) field.focus();
    else if (!dialog.checkVisibility()) opener?.focus();
  }).observe(field);

  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === results) showResults();
  });
  function fail(text) {
    results.replaceChildren();
    showResults();
    status.textContent = "";
    const problem = document.createElement("p");
    problem.className = "commands-none";
    problem.setAttribute("role", "alert");
    problem.textContent = text;
    results.append(problem);
  }

  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    field.addEventListener(name, () => fail("Search failed. Try again in a moment."));
  }
  field.addEventListener("htmx:beforeOnLoad", (event) => {
    // After the session has ended, the request is redirected to the login page.
    const { responseURL, status: code } = event.detail.xhr;
    if (code < 400 && !new URL(responseURL).pathname.endsWith("/search/")) {
      event.preventDefault();
      fail("You are signed out. Reload the page to sign in.");
    }
  });
  for (const button of document.querySelectorAll(".open-search")) {
    button.addEventListener("click", () => dispatchEvent(new CustomEvent("opencommand")));
  }
  describe();
});
