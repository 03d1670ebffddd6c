/* Behavior of the pages: follow a running run, move by keyboard, show values on hover.
   Text only ever becomes text nodes; parts of pages come from the server, escaped. */
"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  /* From here on, not from a moment later: a choice made meanwhile would change nothing. */
  window.htmx?.initialize();

  /* What is drawn again under a finger would eat its click: answers wait until it has let go, and a
     moment longer, since the click of a tap comes behind it. */
  let down = false;
  let soon = 0;
  const waiters = [];
  const letAllGo = () => { for (const go of waiters.splice(0)) go(); };
  const letGo = () => {
    if (!down || soon) return;
    soon = setTimeout(() => {
      down = false;
      soon = 0;
      letAllGo();
    }, 100);
  };
  addEventListener("pointerdown", ({ button, target }) => {
    clearTimeout(soon);
    soon = 0;
    down = button !== 2 && Boolean(target.closest("#list, #live, #tasks, #grid"));
    if (!down) letAllGo();
  }, true);
  for (const end of ["pointerup", "pointercancel", "keydown"]) addEventListener(end, letGo, true);
  /* Some releases fire no event: those outside the window, or on a menu of the browser. */
  addEventListener("blur", letGo);
  addEventListener("pointermove", ({ buttons }) => { if (!buttons) letGo(); }, true);

  /* Open requests: those for one place are made one after the other. */
  const asked = new Set();
  const asking = (place) => [...asked].some((ctx) => ctx.target === place);
  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    asked.add(ctx);
    const ask = ctx.fetch;
    ctx.fetch = async (...what) => {
      const answer = await ask(...what);
      const text = answer.text.bind(answer);
      answer.text = async () => {
        const found = await text();
        while (down) await new Promise((go) => { waiters.push(go); });
        return found;
      };
      return answer;
    };
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => asked.delete(ctx));

  /* A list that looks again by itself does so only when no request is pending: its request would take the
     place of theirs. It leaves alone what the user has begun with, also when the answer is there. */
  const looksAgain = (form, place, busy) => {
    form.addEventListener("htmx:before:swap", (event) => {
      if (event.detail.ctx.sourceEvent?.type === "refresh" && busy()) event.preventDefault();
    });
    return () => {
      if (asking(place)) return false;
      if (!busy()) htmx.trigger(form, "refresh");
      return true;
    };
  };

  /* Live updates: the server sends an event, the page requests the changed parts. */
  const live = one("[data-live]");
  if (live) {
    let waiting = false;
    const changed = () => {
      if (waiting) return;
      waiting = true;
      /* One drawing per frame that is seen: a hidden page draws when it is looked at again. */
      requestAnimationFrame(() => {
        waiting = false;
        htmx.trigger("#live", "changed");
        tasks();
      });
    };
    let source = null;
    const listen = () => {
      source = new EventSource(live.dataset.live);
      source.addEventListener("changed", changed);
    };
    listen();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", ({ persisted }) => { if (persisted) listen(); });
    /* The list of tasks follows more slowly, as it is filtered, unless the user has turned its pages. */
    const form = one("form.tools");
    const look = looksAgain(form, one("#tasks"), () => one("#tasks [rel=prev]"));
    let later = 0;
    let last = 0;
    const ask = () => {
      last = Date.now();
      if (!look()) later = setTimeout(ask, 300);
    };
    const tasks = () => {
      const wait = one("#tasks [data-row]") ? last + 2000 - Date.now() : 0;
      clearTimeout(later);
      later = setTimeout(ask, Math.max(0, wait));
    };
    /* The store or the dashboard is unavailable: the page stays, and the request is repeated. */
    const again = (place, how) => {
      for (const trouble of ["htmx:response:error", "htmx:error"]) {
        place.addEventListener(trouble, ({ target, detail: { ctx } }) => {
          if (target === place && !(ctx?.response?.status < 500)) how();
        });
      }
    };
    again(one("#live"), () => setTimeout(() => htmx.trigger("#live", "changed"), 1500));
    again(form, () => {
      clearTimeout(later);
      later = setTimeout(ask, 1500);
    });
  }

  /* The list of runs looks again by itself, unless the user is choosing from it. */
  const filters = one("#filters");
  if (filters) {
    const busy = () => document.hidden || one("#list input:checked") || one("#list [rel=prev]");
    setInterval(looksAgain(filters, one("#list"), busy), 3000);
  }

  /* Lines. */
  const rows = () => all("[data-row]");
  const link = (row) => row && row.querySelector("a[href]");
  const move = (by) => {
    const found = rows();
    if (!found.length) return false;
    const at = found.findIndex((row) => row.contains(document.activeElement));
    const next = found[Math.min(found.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    link(next)?.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  };
  const follow = (selector) => {
    const found = one(selector);
    if (found) location.assign(found.href);
    return Boolean(found);
  };
  /* A grid of attempts: arrows move from cell to cell, in rows and in columns. */
  const cell = (down, right) => {
    const lines = all(".grid-table tbody tr").map((row) => [...row.querySelectorAll("a[data-cell]")]);
    if (!lines.length) return false;
    const y = lines.findIndex((cells) => cells.includes(document.activeElement));
    const x = y < 0 ? 0 : lines[y].indexOf(document.activeElement);
    const clamp = (value, length) => Math.max(0, Math.min(length - 1, value));
    const row = lines[y < 0 ? 0 : clamp(y + down, lines.length)];
    const next = row[y < 0 ? 0 : clamp(x + right, row.length)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest", inline: "nearest" });
    return Boolean(next);
  };
  const help = () => one("#help").showModal();
  const keys = {
    j: () => cell(1, 0) || follow("#next") || (!one(".steps") && move(1)),
    k: () => cell(-1, 0) || follow("#previous") || (!one(".steps") && move(-1)),
    ArrowRight: () => cell(0, 1) || follow("#next"),
    ArrowLeft: () => cell(0, -1) || follow("#previous"),
    ArrowDown: () => cell(1, 0) || !one(".steps") && rows().some((row) => row.contains(document.activeElement)) && move(1),
    ArrowUp: () => cell(-1, 0) || !one(".steps") && rows().some((row) => row.contains(document.activeElement)) && move(-1),
    f: () => {
      if (follow("#failed-only")) return true;
      const verdict = one("#verdict") || (one(".grid-table, #grid") && one("#show"));
      if (!verdict) return false;
      const every = verdict.id === "show" ? "all" : "";
      verdict.value = verdict.value === "failed" ? every : "failed";
      verdict.dispatchEvent(new Event("change", { bubbles: true }));
      return true;
    },
    u: () => follow("[data-up]"),
    "/": () => { one("#search")?.focus(); return Boolean(one("#search")); },
    "?": () => { help(); return true; },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    /* Asked of the page, not of where the key arrives: until the next frame is drawn, the focus
       stays on the button of a dialog that has just been closed. */
    if (one("dialog[open]")) return;
    const field = event.target.closest("input, select, textarea");
    if (field) {
      if (event.key === "Escape" && field.matches("input")) field.blur();
      if (!field.matches("input[type=checkbox]")) return;
    }
    /* A page with keys of its own, such as that of labels, has them on its buttons. */
    const button = event.repeat ? null : one(`[data-key="${CSS.escape(event.key)}"]`);
    if (button && !button.form.dataset.sent) {
      /* A second key before the next page is there would be about the same attempt. */
      button.form.dataset.sent = "1";
      button.click();
    }
    if (button || keys[event.key]?.()) event.preventDefault();
  });
  addEventListener("pageshow", () => { for (const form of all("[data-sent]")) delete form.dataset.sent; });
  one("#keys")?.addEventListener("click", help);

  /* Values on hover and on focus. When the page scrolls or is drawn again they are looked up again:
     something else lies under a pointer that rests, and what has the focus has moved. */
  const tip = one("#tip");
  const say = (target, x, y) => {
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.dataset.tip;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(6, x + 12), innerWidth - box.width - 6);
    const top = y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18;
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  };
  const marked = (element) => element?.closest("[data-tip]");
  const atFocus = () => {
    const target = marked(document.activeElement);
    const box = target?.getBoundingClientRect();
    say(target, box?.left, box?.bottom);
  };
  let look = atFocus;
  addEventListener("focusin", () => { look = atFocus; look(); });
  addEventListener("pointermove", ({ clientX: x, clientY: y }) => {
    look = () => say(marked(document.elementFromPoint(x, y)), x, y);
    look();
  });
  addEventListener("scroll", () => look(), { passive: true, capture: true });
  document.addEventListener("htmx:after:swap", () => look());

  /* What is shown has an address: filters go into it. */
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form.tools[hx-get]");
    if (!form) return;
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", `${form.getAttribute("action")}${query.size ? `?${query}` : ""}`);
  });
})();
