// The upload of a file: its parts are sent one by one, so that it shows its progress, and continues
// after a lost connection. Without this script, the form sends the whole file.
const LIMIT = 3; // Tries of each part

addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".upload-form");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const area = form.querySelector(".drop-area");
  const button = form.querySelector("button[type=submit]");
  const problems = document.getElementById("upload-problems");
  const shown = form.querySelector(".upload-progress");
  // The theme's script would look for a text input of its own beside it.
  input.hasChangeListener = true;
  const token = form.querySelector("[name=csrfmiddlewaretoken]").value;

  for (const name of ["dragover", "dragleave", "drop"]) {
    area.addEventListener(name, (event) => {
      event.preventDefault();
      area.classList.toggle("is-over", name === "dragover");
    });
  }
  area.addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length > 0) input.files = event.dataTransfer.files;
  });

  function refuse(texts) {
    const list = problems.querySelector("ul");
    list.replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    problems.hidden = false;
    problems.scrollIntoView({ block: "center" });
    shown.hidden = true;
    button.disabled = false;
    input.focus();
  }

  function report(share) {
    shown.hidden = false;
    shown.querySelector("progress").value = share;
    shown.querySelector("p").textContent = `${Math.round(share)} % uploaded`;
  }

  async function post(url, body, headers = {}) {
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { Accept: "application/json", "X-CSRFToken": token, ...headers },
    });
    const isJson = (answer.headers.get("Content-Type") ?? "").startsWith("application/json");
    if (answer.ok && isJson) return answer.json();
    const found = isJson ? (await answer.json()).problems : null;
    throw Object.assign(new Error(answer.status), { problems: found ?? ["You are signed out. Reload the page to sign in."] });
  }

  async function send(file, state, number) {
    const start = number * state.chunk_bytes;
    const part = file.slice(start, start + state.chunk_bytes);
    for (let turn = 1; ; turn += 1) {
      try {
        return await post(`${state.chunk_url}?number=${number}`, part, { "Content-Type": "application/octet-stream" });
      } catch (error) {
        if (error.problems || turn === LIMIT) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000 * turn));
      }
    }
  }

  async function begin(file) {
    const known = document.getElementById("upload-state");
    if (known) {
      const state = JSON.parse(known.textContent);
      // Nothing says that this is the file whose chunks are stored. All are replaced.
      state.missing = [...Array(Math.ceil(state.size / state.chunk_bytes)).keys()];
      return state;
    }
    const given = new FormData(form);
    given.delete("file");
    given.set("name", file.name);
    given.set("size", file.size);
    return post(form.action, given);
  }

  let begun = null; // The file that is being uploaded, and what is left of it

  async function upload(file) {
    report(0);
    const isSame = ["name", "size", "lastModified"].every((each) => begun?.file[each] === file[each]);
    if (!isSame) begun = { file, state: await begin(file) };
    const { state } = begun;
    if (state.size !== file.size) {
      begun = null;
      throw Object.assign(new Error("size"), { problems: ["This is another file. Choose the same file."] });
    }
    const chunks = Math.ceil(file.size / state.chunk_bytes);
    while (state.missing.length > 0) {
      await send(file, state, state.missing[0]);
      state.missing.shift();
      report(100 - (100 * state.missing.length) / chunks);
    }
    // The page of the upload goes on by itself, now that it is complete.
    form.action = state.url;
    input.disabled = true;
    form.submit();
  }

  form.addEventListener("submit", (event) => {
    const [file] = input.files;
    event.preventDefault();
    if (button.disabled) return;
    problems.hidden = true;
    if (!file) {
      refuse(["Choose a file."]);
      return;
    }
    button.disabled = true;
    upload(file).catch((error) => refuse(error.problems ?? ["The connection was lost. Upload it again: it continues where it was."]));
  });
});
