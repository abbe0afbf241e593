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

// Lists of objects: spare rows appear one by one.
function offerRows(structure) {
  const button = structure.querySelector(".structure-add");
  if (!button) return;
  const spare = [...structure.querySelectorAll(":scope > [data-spare]")];
  for (const row of spare) row.hidden = true;
  button.hidden = spare.length === 0;
  button.addEventListener("click", () => {
    const row = spare.shift();
    row.hidden = false;
    row.querySelector(CONTROLS)?.focus();
    button.hidden = spare.length === 0;
  });
}

// Inputs that apply to some values of a choice, the row's first select, are shown for those only.
function followChoice(row) {
  const choice = row.querySelector("select");
  const parts = [...row.querySelectorAll("[data-shown-for]")];
  if (!choice || parts.length === 0) return;
  const update = () => {
    for (const part of parts) part.hidden = !part.dataset.shownFor.split(" ").includes(choice.value);
  };
  choice.addEventListener("change", update);
  update();
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".structure").forEach(offerRows);
  document.querySelectorAll(".structure-row").forEach(followChoice);
});
