/* Common to all pages: shows values on hover, and saves the page's data as a file. */
"use strict";
(() => {
  /* -- values on hover ---------------------------------------------------------------------- */
  const tip = document.getElementById("tip");
  let near = null;
  function show(mark, x, y) {
    if (near) near.classList.remove("near");
    near = mark;
    tip.hidden = !mark;
    if (!mark) return;
    mark.classList.add("near");
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
  }
  for (const svg of document.querySelectorAll("figure svg")) {
    const marks = [...svg.querySelectorAll("[data-tip]")];
    svg.addEventListener("pointermove", (event) => {
      const { clientX: x, clientY: y } = event;
      let best = null, least = 28;
      for (const mark of marks) {
        const box = mark.getBoundingClientRect();
        const dx = Math.max(box.left - x, 0, x - box.right), dy = Math.max(box.top - y, 0, y - box.bottom);
        const far = Math.hypot(dx, dy) + Math.hypot(box.left + box.width / 2 - x, box.top + box.height / 2 - y) / 1000;
        if (far < least) { best = mark; least = far; }
      }
      show(best, x, y);
    });
    svg.addEventListener("pointerleave", () => show(null));
  }

  /* -- the data, as a file ------------------------------------------------------------------ */
  const data = document.querySelector("script[data-file]");
  document.getElementById("save").addEventListener("click", () => {
    const file = new Blob([data.textContent], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = data.dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);  // a browser may begin to read late
  });
})();
