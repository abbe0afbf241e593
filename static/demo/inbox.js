const status = document.getElementById("status");
const csrf = () => document.cookie.match(/(?:^|; )csrftoken=([^;]+)/)?.[1] ?? "";

for (const button of document.querySelectorAll("[data-send]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const answer = await fetch(`/demo/inbox/${button.dataset.send}`, {
        method: "POST",
        headers: { "X-CSRFToken": csrf() },
      });
      status.textContent = answer.ok ? "" : `Not sent: the service answered ${answer.status}.`;
    } catch {
      status.textContent = "Not sent: the service can't be reached.";
    }
    button.disabled = false;
  });
}
