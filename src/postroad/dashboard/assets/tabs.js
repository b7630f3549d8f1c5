/* Tabs (components.tabs): without scripts, the panels with their headings are one below the other. */
"use strict";
(function () {
  function start(box) {
    if (box.dataset.ready) return;
    box.dataset.ready = "true";
    const panels = [...box.children];
    const list = document.createElement("div");
    list.className = "tabs";
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", box.dataset.tabs);

    function choose(tab) {
      tabs.forEach((one, place) => {
        one.setAttribute("aria-selected", String(one === tab));
        one.tabIndex = one === tab ? 0 : -1;
        panels[place].hidden = one !== tab;
      });
      tab.dispatchEvent(new CustomEvent("tab", { bubbles: true, detail: tab.getAttribute("aria-controls") }));
    }

    const tabs = panels.map((panel) => {
      const tab = document.createElement("button");
      const heading = panel.querySelector("[data-tab]");
      Object.assign(tab, { type: "button", id: `${panel.id}-tab`, textContent: heading.textContent });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      tab.addEventListener("click", () => choose(tab));
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      heading.hidden = true;
      return tab;
    });
    /* As in the pattern of the WAI: the arrows move between tabs, and Tab leaves them. */
    list.addEventListener("keydown", (event) => {
      const at = tabs.indexOf(event.target);
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const tab = tabs[next % tabs.length];
      choose(tab);
      tab.focus();
    });
    list.append(...tabs);
    box.prepend(list);
    const target = document.getElementById(location.hash.slice(1));
    choose(tabs[Math.max(panels.findIndex((panel) => panel.contains(target)), 0)]);
  }

  document.addEventListener("prepared", (event) => event.detail.querySelectorAll("[data-tabs]").forEach(start));
  document.querySelectorAll("[data-tabs]").forEach(start);
})();
