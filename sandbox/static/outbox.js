// Brings the page up to date without a reload: what did not change is not touched.
"use strict";

const PAUSE = 1000;
let etag = null;

function localTimes(root) {
  const today = new Date().toDateString();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    const clock = moment.toLocaleTimeString([], { hour12: false });
    const isToday = moment.toDateString() === today && !("long" in time.dataset);
    const day = moment.toLocaleDateString([], { day: "numeric", month: "short" });
    time.textContent = isToday ? clock : `${day}, ${clock}`;
    time.title = moment.toString();
  }
}

function keepOpen(known, fresh) {
  const was = known.querySelector("details");
  const is = fresh.querySelector("details");
  if (was && is) is.open = was.open;
}

// Makes `region` show what `wanted` shows. Elements are told apart by data-key, and left alone
// when their data-version is the same.
function reconcile(region, wanted) {
  const known = new Map([...region.children].map((child) => [child.dataset.key, child]));
  let place = region.firstElementChild;
  for (const fresh of [...wanted.children]) {
    const old = known.get(fresh.dataset.key);
    known.delete(fresh.dataset.key);
    if (old && old.dataset.version === fresh.dataset.version) {
      if (old === place) place = place.nextElementSibling;
      else region.insertBefore(old, place);
      continue;
    }
    if (old) {
      const hadFocus = old.contains(document.activeElement);
      keepOpen(old, fresh);
      if (old === place) place = place.nextElementSibling;
      old.replaceWith(fresh);
      if (hadFocus) fresh.focus({ preventScroll: true });
    } else {
      fresh.classList.add("new");
      region.insertBefore(fresh, place);
    }
  }
  for (const gone of known.values()) gone.remove();
}

async function refresh() {
  const headers = etag ? { "If-None-Match": etag } : {};
  const answer = await fetch(location.href, { headers, cache: "no-store" });
  if (answer.status === 304 || !answer.ok) return;
  etag = answer.headers.get("ETag");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const region of document.querySelectorAll("[data-live]")) {
    const wanted = page.querySelector(`[data-live="${region.dataset.live}"]`);
    if (wanted) reconcile(region, wanted);
  }
  localTimes(document);
}

async function keepFresh() {
  if (!document.hidden) {
    try {
      await refresh();
      document.body.classList.remove("offline");
    } catch {
      document.body.classList.add("offline");
    }
  }
  setTimeout(keepFresh, PAUSE);
}

localTimes(document);
if (document.querySelector("main [data-live]")) setTimeout(keepFresh, PAUSE);
