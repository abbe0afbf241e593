// Forms of objects: a page that returns with errors shows the first field that has one, and links in
// the summary of errors lead to their fields.
const CONTROLS = "input:not([type=hidden]), select, textarea";

function show(element) {
  const control = element?.matches(CONTROLS) ? element : element?.querySelector(CONTROLS);
  (element?.closest(".field-line, .form-row, .group") ?? element)?.scrollIntoView({ block: "center" });
  control?.focus({ preventScroll: true });
}

addEventListener("load", () => {
  const links = [...document.querySelectorAll(".form-errors a")];
  const field = (link) => document.getElementById(link.hash.slice(1));
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      show(field(link));
    });
  }
  show(links.map(field).find(Boolean));
});
