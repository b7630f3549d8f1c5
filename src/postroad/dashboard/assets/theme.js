/* Runs before the first paint: the chosen theme, else that of the system. */
"use strict";
(function () {
  try {
    const chosen = localStorage.getItem("postroad-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch { /* storage may be forbidden: use the system's theme */ }
})();
