// Reports the refreshes of a page by htmx: the new state to screen readers, and a refresh that
// failed to everyone. The next refresh follows by itself.
addEventListener("DOMContentLoaded", () => {
  const problem = document.getElementById("live-problem");
  const status = document.getElementById("live-status");
  if (!problem || !status) return;

  function report(text) {
    problem.querySelector("p").textContent = text;
    problem.hidden = text === "";
  }

  // Other requests on the page, such as those of the command palette, are not refreshes.
  function isRefresh(event) {
    return event.detail.pathInfo?.requestPath.split("?")[0].endsWith("/refresh/") ?? false;
  }

  function failed(event) {
    if (!isRefresh(event)) return;
    report(`Couldn't refresh at ${new Date().toLocaleTimeString()}. Trying again.`);
  }

  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.body.addEventListener(name, failed);
  }
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (!isRefresh(event)) return;
    // After the session has ended, the request is redirected to the login page.
    if (!new URL(event.detail.xhr.responseURL).pathname.endsWith("/refresh/")) {
      event.detail.shouldSwap = false;
      report("Couldn't refresh: you are signed out. Reload the page to sign in.");
    } else if (event.detail.xhr.status < 400) {
      report("");
    }
  });
  function announce() {
    const sentence = document.querySelector("#state h2");
    if (sentence && status.textContent !== sentence.textContent) {
      status.textContent = sentence.textContent;
    }
  }

  for (const name of ["htmx:oobAfterSwap", "htmx:afterSwap"]) {
    document.body.addEventListener(name, announce);
  }
});
