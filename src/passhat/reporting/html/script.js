/* Draws the tasks from the embedded data and answers deep links. Text from the data only ever
   becomes text nodes. */
"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = read("attempts-data");
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== "") node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const MARKS = { 1: ["●", "p", "passed"], 0: ["○", "f", "failed"], "-": ["–", "m", "missing"] };
  const several = data.runs.length > 1;

  /* Where each task's attempts start in a run's columns. */
  for (const run of data.runs) {
    run.starts = [];
    let at = 0;
    for (const marks of run.marks || []) { run.starts.push(at); at += marks.length; }
  }
  /* Of a run that was counted there are only numbers: passed, failed, missing. */
  const MOST_DOTS = 100;
  const tried = (run, i) => run.counts ? run.counts[i].length > 0 : run.marks[i] !== "";
  const dotsOf = (run, i) => {
    if (!run.counts) return run.marks[i];
    const [passed, failed, missing] = run.counts[i];
    return passed + failed + missing > MOST_DOTS
      ? "" : "1".repeat(passed) + "0".repeat(failed) + "-".repeat(missing);
  };
  const count = (marks, mark) => marks.split(mark).length - 1;
  const tasks = data.tasks.map((id, i) => {
    const sides = data.runs.map((run) => {
      if (run.counts) {
        const [passed, failed, missing] = tried(run, i) ? run.counts[i] : [0, 0, 0];
        return { n: passed + failed, c: passed, missing };
      }
      const marks = run.marks[i];
      const missing = count(marks, "-");
      return { n: marks.length - missing, c: count(marks, "1"), missing };
    });
    const known = sides.filter((s) => s.n);
    const rates = known.map((s) => s.c / s.n);
    const n = known.reduce((sum, s) => sum + s.n, 0);
    const c = known.reduce((sum, s) => sum + s.c, 0);
    const unsettled = known.reduce((sum, s) => {
      const a = s.c + 0.5, b = s.n - s.c + 0.5;
      return sum + a * b / ((a + b) ** 2 * (a + b + 1));
    }, 0);
    return {
      i, id, sides, n, c, rate: n ? c / n : 0, unsettled,
      missing: sides.some((s) => s.missing),
      differ: rates.length > 1 && Math.max(...rates) !== Math.min(...rates),
      gain: several && sides[0].n && sides[1].n ? sides[1].c / sides[1].n - sides[0].c / sides[0].n : 0,
      text: (id + " " + (data.labels[i] || "")).toLowerCase(),
    };
  });
  const place = new Map(data.tasks.map((id, i) => [id, i]));

  const numberOf = (run, i, row) => ((run.numbers || {})[i] || [])[row] || row + 1;
  const address = (id, number, side) =>
    "#" + encodeURI(id).replace(/#/g, "%23") + (number ? "#" + number : "") + (side ? "@" + (side + 1) : "");

  function dots(marks) {
    const node = make("span", "", "dots");
    node.setAttribute("role", "img");
    const passed = count(marks, "1"), missing = count(marks, "-");
    node.setAttribute("aria-label", `${passed} of ${marks.length - missing} passed`
      + (missing ? `, ${missing} missing` : ""));
    /* One element per stretch of equal marks: few of them, however many attempts. */
    for (const [stretch] of marks.matchAll(/1+|0+|-+/g)) {
      const [sign, name] = MARKS[stretch[0]];
      node.append(make("span", sign.repeat(stretch.length), name));
    }
    return node;
  }

  function row(task) {
    const node = make("details", "", "task");
    node.setAttribute("role", "listitem");
    node.dataset.task = task.i;
    const summary = make("summary");
    const name = make("span", task.id, "name");
    const kind = make("span", data.labels[task.i] || "", "kind");
    const sides = make("span", "", "sides");
    data.runs.forEach((run, side) => {
      const own = task.sides[side];
      const part = make("span", "", "side");
      if (several) part.append(make("i", run.label));
      if (tried(run, task.i)) {
        part.append(dots(dotsOf(run, task.i)), make("b", `${own.c} of ${own.n}`));
      } else part.append(make("b", "not attempted"));
      sides.append(part);
    });
    summary.append(name, ...(data.labels.length ? [kind] : []), sides);
    node.append(summary);
    node.addEventListener("toggle", () => { if (node.open) fill(node, task); });
    return node;
  }

  function fill(node, task) {
    if (node.children.length > 1) return;
    const inside = make("div", "", "inside");
    data.runs.forEach((run, side) => {
      if (!tried(run, task.i)) return;
      const part = make("div");
      if (several) part.append(make("h4", run.label));
      if (run.counts) {
        const own = task.sides[side];
        part.append(make("p", `${own.c} passed, ${own.n - own.c} failed, ${own.missing} missing; `
          + "single attempts are left out of this page"));
        inside.append(part);
        return;
      }
      const marks = run.marks[task.i];
      if (!run.ordered) part.append(make("h4", "the order of the attempts is not known"));
      for (let at = 0; at < marks.length; at += 1) part.append(attempt(run, side, task, at));
      inside.append(part);
    });
    node.append(inside);
  }

  function attempt(run, side, task, at) {
    const number = numberOf(run, task.i, at), column = run.starts[task.i] + at;
    const node = make("div", "", "attempt");
    node.dataset.attempt = `${task.id}#${number}@${side + 1}`;
    const link = make("a", `#${number}`);
    link.href = address(task.id, number, side);
    link.title = `${task.id}#${number}`;
    const [sign, name, word] = MARKS[run.marks[task.i][at]];
    const body = make("div");
    body.append(make("span", sign, name), ` ${word}`);
    const why = run.codes && run.codes[column] ? run.words[run.codes[column] - 1] : null;
    if (why) body.append(`, ${why[0].replaceAll("_", " ")}${why[1] ? `: ${why[1]}` : ""}`);
    const took = [];
    for (const [measure, values] of Object.entries(run.measures || {})) {
      if (values[column] !== null) took.push(`${values[column]} ${measure}`);
    }
    if (run.seeds && run.seeds[column]) took.push(`seed ${run.seeds[column]}`);
    if (took.length) body.append(" ", make("span", took.join(", "), "took"));
    const turns = (run.transcripts || {})[`${task.i}#${number}`];
    if (turns) body.append(conversation(turns));
    node.append(link, body);
    return node;
  }

  function conversation(turns) {
    const node = make("details", "", "talk");
    node.append(make("summary", `Conversation, ${turns.length} turns`));
    node.tell = () => {
      if (!node.open || node.children.length > 1) return;
      for (const [role, text] of turns) {
        const turn = make("div", "", "turn");
        turn.append(make("b", role), make("pre", data.texts[text]));
        node.append(turn);
      }
    };
    node.addEventListener("toggle", node.tell);
    return node;
  }

  /* -- the list: filtered, sorted, and drawn a piece at a time ------------------------------ */
  const list = byId("list"), more = byId("more");
  const PIECE = 100;
  let chosen = tasks, drawn = 0;
  const FILTERS = {
    all: () => true,
    flaky: (t) => t.c > 0 && t.c < t.n,
    never: (t) => t.c === 0,
    always: (t) => t.n > 0 && t.c === t.n,
    missing: (t) => t.missing,
    differ: (t) => t.differ,
  };
  const ORDERS = {
    given: (a, b) => a.i - b.i,
    unsettled: (a, b) => b.unsettled - a.unsettled,
    low: (a, b) => a.rate - b.rate,
    high: (a, b) => b.rate - a.rate,
    name: (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }),
    gain: (a, b) => b.gain - a.gain,
    loss: (a, b) => a.gain - b.gain,
  };

  function choose() {
    const wanted = byId("find").value.trim().toLowerCase();
    const keep = FILTERS[byId("show").value], order = ORDERS[byId("sort").value];
    chosen = tasks.filter((t) => keep(t) && t.text.includes(wanted))
      .sort((a, b) => order(a, b) || a.i - b.i);
    redraw();
    byId("count").textContent = chosen.length === tasks.length
      ? `${tasks.length.toLocaleString("en")} tasks`
      : `${chosen.length.toLocaleString("en")} of ${tasks.length.toLocaleString("en")} tasks`;
  }

  function redraw() {
    list.replaceChildren();
    drawn = 0;
    draw();
  }

  function draw(upTo = drawn + PIECE) {
    const piece = document.createDocumentFragment();
    for (const task of chosen.slice(drawn, upTo)) piece.append(row(task));
    drawn = Math.max(drawn, Math.min(upTo, chosen.length));
    list.append(piece);
    /* The observer fires on changes only: not for an end that is still in sight, or again. */
    end.unobserve(more);
    end.observe(more);
  }

  const end = new IntersectionObserver((seen) => {
    if (seen.at(-1).isIntersecting && drawn < chosen.length) draw();
  }, { rootMargin: "600px" });
  /* Paper has no scrolling: a few hundred rows are all that anyone prints. */
  addEventListener("beforeprint", () => draw(Math.min(chosen.length, 500)));
  byId("find").addEventListener("input", choose);
  byId("show").addEventListener("change", choose);
  byId("sort").addEventListener("change", choose);
  document.querySelector(".tools").addEventListener("submit", (event) => event.preventDefault());

  /* A click on a dot opens that attempt. */
  list.addEventListener("click", (event) => {
    const own = event.target.closest(".dots");
    if (!own || !own.firstChild) return;
    const found = document.caretPositionFromPoint
      ? document.caretPositionFromPoint(event.clientX, event.clientY) : null;
    if (!found || !own.contains(found.offsetNode)) return;
    let at = found.offset;
    for (let part = found.offsetNode.parentNode.previousSibling; part; part = part.previousSibling) {
      at += part.textContent.length;
    }
    const task = tasks[own.closest(".task").dataset.task];
    const side = [...own.closest(".sides").children].indexOf(own.closest(".side"));
    if (data.runs[side].counts) return;
    const last = data.runs[side].marks[task.i].length - 1;
    event.preventDefault();
    location.hash = address(task.id, numberOf(data.runs[side], task.i, Math.min(at, last)), side);
  });

  /* -- deep links: #task, #task#3, and #task#3@2 for the second run ------------------------- */
  function follow() {
    const text = decodeURIComponent(location.hash.slice(1));
    if (!text || byId(text)) return;
    const parts = /^(.*)#(\d+)(?:@(\d+))?$/.exec(text);
    const id = place.has(text) ? text : parts ? parts[1] : "";
    if (!place.has(id)) return;
    const task = tasks[place.get(id)];
    if (!chosen.includes(task)) {
      byId("find").value = "";
      byId("show").value = "all";
      choose();
    }
    if (chosen.indexOf(task) >= drawn) {
      /* Far down: it is shown first rather than after thousands of others. */
      chosen = [task, ...chosen.filter((other) => other !== task)];
      redraw();
    }
    const node = list.children[chosen.indexOf(task)];
    node.open = true;
    fill(node, task);
    for (const old of list.querySelectorAll(".here")) old.classList.remove("here");
    let target = node, talk = null;
    if (parts && id === parts[1]) {
      const wanted = `${id}#${parts[2]}@${parts[3] || 1}`;
      const found = [...node.querySelectorAll(".attempt")].find((a) => a.dataset.attempt === wanted);
      if (found) {
        target = found;
        found.classList.add("here");
        talk = found.querySelector(".talk");
      }
    }
    target.scrollIntoView({ block: "center" });
    if (talk) {
      talk.open = true;
      talk.tell();  // now: that it was opened is told a frame later
    }
  }
  addEventListener("hashchange", follow);

  const first = tasks.find((t) => tried(data.runs[0], t.i));
  if (first) byId("example").textContent = data.runs[0].counts ? `#${first.id}` : `#${first.id}#1`;
  choose();
  follow();
})();
