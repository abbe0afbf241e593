// The preview of an email is loaded into its frame by the form, which has the values of the message.
addEventListener("load", () => {
  const button = document.querySelector(".show-mail");
  if (!button) return;
  button.form.requestSubmit(button);
  button.hidden = true;
});
