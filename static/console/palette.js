// The theme puts the keyboard into the command palette 20 ms after it opened. Where a browser
// draws later than that, the field is not to be seen yet and cannot take it: so once more, when
// it is.
addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("search-input-command");
  if (!field) return;
  new IntersectionObserver(([seen]) => {
    if (seen.isIntersecting) field.focus();
  }).observe(field);
});
