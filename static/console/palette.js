// The command palette (Ctrl K). The theme focuses its field 20 ms after it opens. If the browser
// renders later than that, the field isn't visible yet and can't take the focus: this focuses it
// once it is. The first result is current at once, and Enter without a result does nothing.
addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("search-input-command");
  if (!field) return;
  field.setAttribute("aria-label", "Search pages, recipients, and notifications");
  const dialog = field.closest("[x-data]");
  dialog?.setAttribute("role", "dialog");
  dialog?.setAttribute("aria-label", "Search");
  new IntersectionObserver(([seen]) => {
    if (seen.isIntersecting) field.focus();
  }).observe(field);
  document.addEventListener("htmx:after-swap", (event) => {
    if (event.target.id !== "command-results") return;
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || document.querySelector("#command-results-list li.active")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
});
