// Shows times in the browser's time zone, with UTC, in which the server writes them, beside it if it
// differs. A clock (data-clock) leaves the date out on the same day. A time with seconds
// (data-seconds) has its UTC beside it in the page.
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
    if ("seconds" in element.dataset) {
      // The same time twice says nothing.
      const beside = element.parentNode.querySelector(".utc-beside");
      if (beside) beside.hidden = at.getTimezoneOffset() === 0;
      continue;
    }
    if (at.getTimezoneOffset() === 0) continue;
    const utc = at.toISOString();
    const utcDay = utc.slice(0, 10) === day ? "" : `${utc.slice(0, 10)} `;
    const beside = document.createElement("span");
    beside.className = "utc quiet";
    beside.textContent = ` ${utcDay}${utc.slice(11, 16)} UTC`;
    element.append(beside);
  }
}

addEventListener("DOMContentLoaded", () => {
  localize(document);
  // htmx replaces parts of a page, such as the progress of a bulk operation.
  document.body.addEventListener("htmx:load", (event) => localize(event.detail.elt.parentNode ?? document));
});
