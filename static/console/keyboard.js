// The theme has controls that only a mouse reaches: elements with a click handler that are neither
// links nor buttons, such as the filters, the account menu, the sidebar, and collapsible groups.
// This makes them buttons for the keyboard and for screen readers, and names icons, landmarks, and
// the cells of lists.
const NAMES = { close: "Close menu", dock_to_right: "Show or hide menu" };
const OWN_FOCUS = "a[href], button, input, select, textarea, summary, li, form";

function addButton(element) {
  const icon = element.textContent.trim();
  element.setAttribute("role", "button");
  element.tabIndex = 0;
  if (icon in NAMES) element.setAttribute("aria-label", NAMES[icon]);
  element.addEventListener("keydown", (event) => {
    if (event.target !== element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    element.click();
  });
}

function addMenuState(button, menu) {
  if (!button || !menu) return;
  const show = () => button.setAttribute("aria-expanded", String(menu.style.display !== "none"));
  new MutationObserver(show).observe(menu, { attributes: true, attributeFilter: ["style"] });
  show();
}

// The theme's scroll areas are landmarks that all have the same name.
const AREAS = { "nav-sidebar-apps": "Pages", "command-results": "Search results", result_list: "List" };

function nameArea(area) {
  const id = Object.keys(AREAS).find((name) => area.id === name || area.querySelector(`#${name}`));
  const name = AREAS[id] ?? (area.closest("#changelist-filter") ? "Filters" : "");
  if (name) area.querySelector(".simplebar-content-wrapper")?.setAttribute("aria-label", name);
}

// On a phone, a cell has its column's heading as a label. The theme's own labels lack capitals, and
// the first is "Select record" in a list without checkboxes.
function labelCells(list) {
  const headings = [...list.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  for (const row of list.querySelectorAll("tr.data-row")) {
    for (const cell of row.cells) {
      const heading = headings[cell.cellIndex];
      if (heading && !cell.querySelector(".action-select")) cell.dataset.label = heading;
    }
  }
}

addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("result_list");
  if (list?.tHead) labelCells(list);
  for (const element of document.querySelectorAll("[x-on\\:click]")) {
    if (!element.matches(OWN_FOCUS) && element.id !== "changelist-filter-close") addButton(element);
  }
  for (const heading of document.querySelectorAll("#nav-sidebar-apps h2[role=button]")) {
    addMenuState(heading, heading.nextElementSibling);
  }
  const account = document.querySelector("#nav-sidebar-inner nav");
  account?.setAttribute("aria-label", "Account");
  addMenuState(account?.nextElementSibling, account);
  document.getElementById("nav-sidebar-inner")?.setAttribute("aria-label", "Console");
  for (const icon of document.querySelectorAll(".material-symbols-outlined:not([role])")) {
    if (icon.parentElement?.textContent.trim() !== icon.textContent.trim()) {
      icon.setAttribute("aria-hidden", "true");
    }
  }
});

// The areas exist when their script, the last one, has run.
addEventListener("load", () => document.querySelectorAll("[data-simplebar]").forEach(nameArea));
