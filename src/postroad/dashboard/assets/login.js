/* In development the link that `postroad dev` prints has the login in its fragment, which never leaves the browser.
   It is filled in, not submitted: a link from someone else must not log anyone in. */
"use strict";
(function () {
  const [email, password] = decodeURIComponent(location.hash.slice(1)).split(" ");
  if (!email || !password) return;
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("field-email").value = email;
  document.getElementById("field-password").value = password;
  document.querySelector("form button").focus();
})();
