// The theme focuses the field of the command palette 20 ms after it opens. If the browser renders
// later than that, the field isn't visible yet and can't take the focus: this focuses it once it is.
addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("search-input-command");
  if (!field) return;
  new IntersectionObserver(([seen]) => {
    if (seen.isIntersecting) field.focus();
  }).observe(field);
});
