/* Before anything is drawn: the colours that somebody chose, else those of their system. */
"use strict";
(function () {
  try {
    const chosen = localStorage.getItem("postroad-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch { /* storage may be forbidden: the system's colours do */ }
})();
