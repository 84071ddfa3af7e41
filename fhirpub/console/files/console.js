"use strict";

// Passkeys (WebAuthn): a form with data-passkey asks the browser to make one ("create") or to sign
// in with one ("get"), by the options in data-options, and sends the answer in the field
// "credential". Binary values are base64url on both sides.

const bytesOf = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));

const textOf = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const optionsOf = (form) => {
  const options = JSON.parse(form.dataset.options);
  options.challenge = bytesOf(options.challenge);
  if (options.user) options.user.id = bytesOf(options.user.id);
  for (const one of options.excludeCredentials ?? []) one.id = bytesOf(one.id);
  return options;
};

const answerOf = (credential) => {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = textOf(credential.response[name]);
  }
  return JSON.stringify({ id: credential.id, rawId: textOf(credential.rawId), type: credential.type, response });
};

const sayWhy = (problem) => {
  if (problem.name === "InvalidStateError") return "This device has a passkey of yours already: sign in with it.";
  if (problem.name === "NotAllowedError") return "No passkey was used: it took too long, or was cancelled. Try again.";
  return "This browser or device cannot use a passkey here: try another one.";
};

const askForPasskey = async (form) => {
  const said = form.querySelector("[role=alert]");
  const button = form.querySelector("button");
  said.hidden = true;
  button.disabled = true;
  try {
    const publicKey = optionsOf(form);
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey });
    form.elements.credential.value = answerOf(credential);
    form.submit();
  } catch (problem) {
    said.textContent = sayWhy(problem);
    said.hidden = false;
    button.disabled = false;
  }
};

document.addEventListener("submit", (event) => {
  if (event.target.dataset.passkey === undefined) return;
  event.preventDefault();
  askForPasskey(event.target);
});

// A part of a page that is loaded again must not be replaced by the page of signing in.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (new URL(event.detail.xhr.responseURL).pathname === "/console/sign-in") {
    event.detail.shouldSwap = false;
    window.location.reload();
  }
});
