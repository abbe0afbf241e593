// Shows times in the browser's time zone. The server writes them in UTC, and the title keeps UTC.
// A clock (data-clock) leaves the date out on the same day; data-seconds adds the seconds.
const two = (number) => String(number).padStart(2, "0");

function localize(root) {
  const today = new Date().toDateString();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (isNaN(at)) continue;
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    let clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
    const isShort = "clock" in element.dataset && at.toDateString() === today;
    if ("seconds" in element.dataset) clock += `:${two(at.getSeconds())}`;
    element.textContent = isShort ? clock : `${day} ${clock}`;
  }
}

addEventListener("DOMContentLoaded", () => {
  localize(document);
  // htmx replaces parts of a page, such as the progress of a bulk operation.
  document.body.addEventListener("htmx:load", (event) => localize(event.detail.elt.parentNode ?? document));
});
