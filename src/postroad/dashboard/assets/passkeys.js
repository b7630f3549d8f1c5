/* Forms with data-passkey: before such a form is sent, its options are fetched from there, and the authenticator's answer
   is put into the form. On the login page passkeys are also offered with the email field. */
"use strict";
(function () {
  const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  const encode = (data) => btoa(String.fromCharCode(...new Uint8Array(data))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const named = (list) => (list || []).map((one) => ({ ...one, id: decode(one.id) }));

  /* What the authenticator is asked waits for it alone: a new question ends the one before. */
  let waiting = null;
  const answers = new WeakSet();

  async function options(form) {
    const body = new URLSearchParams();
    const token = form.elements.namedItem("csrf_token");
    if (token) body.set("csrf_token", token.value);
    const answer = await fetch(form.dataset.passkey, { method: "POST", body, headers: { "X-Enhanced": "form" } });
    const found = await answer.json().catch(() => null);
    if (answer.ok) return found;
    const problem = new Error(found?.error || `The service responded ${answer.status}.`);
    problem.isUnconfirmed = answer.headers.get("Confirmation") === "required";
    throw problem;
  }

  async function ask(form, mediation) {
    const given = await options(form);
    waiting?.abort();
    waiting = new AbortController();
    const signal = waiting.signal;
    given.challenge = decode(given.challenge);
    if (given.rp) {
      given.user.id = decode(given.user.id);
      given.excludeCredentials = named(given.excludeCredentials);
      return navigator.credentials.create({ publicKey: given, signal });
    }
    given.allowCredentials = named(given.allowCredentials);
    return navigator.credentials.get({ publicKey: given, signal, ...(mediation ? { mediation } : {}) });
  }

  function write(form, credential) {
    const response = { clientDataJSON: encode(credential.response.clientDataJSON) };
    for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = encode(credential.response[name]);
    }
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    const rawId = encode(credential.rawId);
    form.elements.namedItem("answer").value = JSON.stringify({ id: rawId, rawId, type: credential.type, response });
  }

  function submit(form, credential, button) {
    write(form, credential);
    answers.add(form);
    form.requestSubmit(button);
  }

  const explain = (problem) => {
    if (problem.name === "NotAllowedError") return "No passkey was used: the request was canceled or timed out.";
    if (problem.name === "InvalidStateError") return "This device already has a passkey for your login.";
    if (problem.name === "SecurityError") return "Passkeys do not work at this address.";
    return problem.message;
  };

  /* Before forms.js sends it. */
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.passkey || answers.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const button = event.submitter;
    button.disabled = true;
    try {
      const credential = await ask(form);
      button.disabled = false;
      submit(form, credential, button);
    } catch (problem) {
      button.disabled = false;
      if (!problem.isUnconfirmed) window.postroad.refuse(form, button, explain(problem));
      else if (await window.postroad.identify()) form.requestSubmit(button);
    }
  }, true);

  /* Browsers offer passkeys with the email field, where they can; nothing happens until one is chosen. */
  async function offer(form) {
    if (!(await window.PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    try { submit(form, await ask(form, "conditional"), form.querySelector("button")); }
    catch { /* another way was chosen */ }
  }

  function prepare(place) {
    place.querySelectorAll("[data-passkey-origin]").forEach((part) => {
      const works = Boolean(window.PublicKeyCredential) && part.dataset.passkeyOrigin === location.origin;
      part.hidden = !works;
      part.parentElement.querySelectorAll("[data-without-passkeys]").forEach((text) => { text.hidden = works; });
      if (works) part.querySelectorAll("form[data-passkey-offer]").forEach(offer);
    });
  }
  document.addEventListener("prepared", (event) => prepare(event.detail));
  prepare(document);
})();
