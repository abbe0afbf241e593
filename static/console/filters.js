// The theme's panel of filters as a dialog: focus goes into it, stays there, and returns to the button
// when it closes.
const FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, [role=button], [tabindex='0']";

addEventListener("DOMContentLoaded", () => {
  const panel = document.getElementById("changelist-filter");
  if (!panel) return;
  const attributes = { role: "dialog", "aria-modal": "true", "aria-label": "Filters" };
  for (const [name, value] of Object.entries(attributes)) panel.setAttribute(name, value);
  let opener = null;
  let wasOpen = false;

  const isOpen = () => panel.checkVisibility();
  const controls = () => [...panel.querySelectorAll(FOCUSABLE)].filter((one) => one.checkVisibility());

  function update() {
    if (isOpen() === wasOpen) return;
    wasOpen = !wasOpen;
    if (wasOpen) {
      opener = document.activeElement;
      panel.querySelector("form :is(input:not([type=hidden]), select)")?.focus();
    } else {
      opener?.focus();
    }
  }

  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const found = controls();
    const [first, last] = [found[0], found.at(-1)];
    const edge = event.shiftKey ? first : last;
    if (document.activeElement !== edge && panel.contains(document.activeElement)) return;
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  });
  // The theme shows and hides the panel by its style.
  new MutationObserver(update).observe(panel, { attributes: true, attributeFilter: ["style"] });
});
