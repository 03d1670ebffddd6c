/* Theme: light, dark or system; chosen at the foot of a page, remembered in this browser. It is
   in the head, so that a page is never drawn in the other colors first. */
"use strict";
(() => {
  const KEY = "passhat-scheme";
  const root = document.documentElement;
  const stored = () => {
    try { return localStorage.getItem(KEY) || ""; } catch { return ""; }
  };
  const show = (scheme) => {
    if (scheme === "light" || scheme === "dark") root.dataset.scheme = scheme;
    else delete root.dataset.scheme;
  };
  show(stored());
  addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("scheme");
    choice.closest("label").hidden = false;
    choice.value = root.dataset.scheme || "";
    choice.addEventListener("change", () => {
      show(choice.value);
      try { localStorage.setItem(KEY, choice.value); } catch { /* for this page only, then */ }
    });
    /* Another page of the same browser chose. */
    addEventListener("storage", (event) => {
      if (event.key !== KEY) return;
      show(stored());
      choice.value = root.dataset.scheme || "";
    });
  });
})();
