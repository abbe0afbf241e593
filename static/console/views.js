// Shows how many objects each saved view in the menu has, once the page is shown. A count that fails
// or is late is left out.
addEventListener("load", async () => {
  const links = [...document.querySelectorAll('#nav-sidebar-apps a[href$="/open/"]')];
  const all = document.querySelector('#nav-sidebar-apps a[href$="/savedview/"]');
  if (!all || links.length === 0) return;
  let found;
  try {
    const response = await fetch(`${all.pathname}counts/`, { headers: { Accept: "application/json" } });
    if (!response.ok || response.redirected) return;
    found = await response.json();
  } catch {
    return;
  }
  for (const link of links) {
    const shown = found[link.pathname];
    if (!shown) continue;
    const beside = document.createElement("span");
    beside.className = shown.problem ? "view-count view-problem" : "view-count";
    beside.textContent = shown.problem ? "Not shown" : shown.count;
    if (shown.problem) beside.title = shown.problem;
    link.append(beside);
  }
});
