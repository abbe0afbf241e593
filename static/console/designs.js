// The live preview of an item of the design. The server renders the message as it would be
// sent, and says what is wrong; the frame runs no script, so its document is replaced from here.
const DELAY = 350;
const WIDTHS = { desktop: 720, phone: 375 };

addEventListener("DOMContentLoaded", () => {
  const panel = document.getElementById("preview");
  if (!panel) return;
  const form = document.getElementById("design-form");
  const stage = panel.querySelector(".stage");
  const frame = stage.querySelector("iframe");
  const part = (name) => document.getElementById(`preview-${name}`);
  const chosen = (name) => panel.querySelector(`[name=${name}]:checked`)?.value;
  const isEditable = panel.dataset.editable === "yes";
  const touched = new Set();
  let html = null;
  let request = null;
  let waiting = null;

  function fit() {
    const width = WIDTHS[chosen("width")];
    const scale = Math.min(1, stage.clientWidth / width);
    const content = frame.contentDocument?.documentElement;
    stage.dataset.width = chosen("width");
    frame.style.width = `${width}px`;
    frame.style.height = "240px";
    const height = Math.max(content?.scrollHeight ?? 0, 240);
    frame.style.height = `${height}px`;
    frame.style.transform = `scale(${scale})`;
    frame.style.left = `${Math.max(0, (stage.clientWidth - width * scale) / 2)}px`;
    stage.style.height = `${height * scale}px`;
  }

  function draw() {
    const target = frame.contentDocument;
    if (!html || !target) return;
    // By the frame's own parser: this page's policy forbids the styles of an email.
    const parser = new frame.contentWindow.DOMParser();
    const parsed = parser.parseFromString(html[chosen("scheme")], "text/html");
    target.replaceChild(target.adoptNode(parsed.documentElement), target.documentElement);
    for (const image of target.images) image.addEventListener("load", fit);
    fit();
  }

  function showLanguages(languages) {
    const select = panel.querySelector("[name=language]");
    select.replaceChildren(
      ...languages.map(([code, name, isChosen]) => new Option(name, code, isChosen, isChosen)),
    );
    select.disabled = languages.length < 2;
  }

  // An error is shown beside a field that was edited, and others only say why nothing is shown.
  function showErrors(errors, labels) {
    for (const control of form.elements) {
      if (!control.name || !touched.has(control.name)) continue;
      const texts = errors[control.name] ?? [];
      let place = document.getElementById(`${control.id}-error`);
      if (!place) {
        place = document.createElement("p");
        place.className = "source-error";
        place.id = `${control.id}-error`;
        control.after(place);
      }
      place.textContent = texts.join(" ");
      place.hidden = texts.length === 0;
      control.toggleAttribute("aria-invalid", texts.length > 0);
      if (texts.length > 0) control.setAttribute("aria-invalid", "true");
    }
    return Object.entries(errors).flatMap(([name, texts]) =>
      texts.map((text) => (labels[name] ? `${labels[name]}: ${text}` : text)),
    );
  }

  function showProblems(problems) {
    const lines = problems.map((text) => {
      const line = document.createElement("p");
      line.textContent = text;
      return line;
    });
    part("problem").querySelector("div").replaceChildren(...lines);
    part("problem").hidden = problems.length === 0;
    stage.classList.toggle("stale", problems.length > 0);
    const status = problems.length > 0 ? problems.join(" ") : "Preview updated.";
    if (part("status").textContent !== status) part("status").textContent = status;
  }

  function show(found) {
    const problems = showErrors(found.errors, found.labels);
    if (found.problem) problems.push(found.problem);
    if (found.contrast) document.getElementById("contrast").innerHTML = found.contrast;
    if (found.languages) showLanguages(found.languages);
    part("note").textContent = found.note ?? "";
    part("note").hidden = !found.note;
    if (found.html) {
      html = found.html;
      part("sender").textContent = found.sender;
      part("subject").textContent = found.subject;
      part("text").textContent = found.text;
      draw();
    }
    showProblems(problems);
  }

  async function update() {
    request?.abort();
    request = new AbortController();
    const url = new URL(panel.dataset.url, location.href);
    for (const select of panel.querySelectorAll("select")) {
      url.searchParams.set(select.name, select.value);
    }
    try {
      const options = isEditable ? { method: "POST", body: new FormData(form) } : {};
      const response = await fetch(url, { ...options, signal: request.signal });
      if (response.redirected) showProblems(["You are signed out. Reload the page to sign in."]);
      else if (!response.ok) showProblems(["The preview couldn't be made. Edit something to retry."]);
      else show(await response.json());
    } catch (error) {
      if (error.name !== "AbortError") showProblems(["No connection. Edit something to retry."]);
    }
  }

  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(update, DELAY);
  }

  form.addEventListener("input", (event) => {
    touched.add(event.target.name);
    soon();
  });
  for (const select of panel.querySelectorAll("select")) select.addEventListener("change", update);
  for (const radio of panel.querySelectorAll("[type=radio]")) {
    radio.addEventListener("change", radio.name === "scheme" ? draw : fit);
  }

  // A colour is its text. The browser's own input is beside it, for the eye.
  for (const picker of form.querySelectorAll("[type=color]")) {
    const text = document.getElementById(picker.dataset.for);
    picker.hidden = false;
    picker.addEventListener("input", () => {
      text.value = picker.value;
      text.dispatchEvent(new Event("input", { bubbles: true }));
    });
    text.addEventListener("input", () => {
      if (/^#[0-9a-f]{6}$/i.test(text.value.trim())) picker.value = text.value.trim();
    });
  }

  for (const button of form.querySelectorAll("[data-take]")) {
    button.addEventListener("click", () => {
      const control = document.getElementById(button.dataset.take);
      control.value = button.dataset.value;
      control.dispatchEvent(new Event("input", { bubbles: true }));
      control.focus();
      button.closest(".theirs").remove();
    });
  }

  new ResizeObserver(fit).observe(stage);
  if (frame.contentDocument?.readyState === "complete" && frame.contentDocument.title) update();
  frame.addEventListener("load", update);
});
