/* Sorts and filters the tables of a leaderboard, and draws the grid of tasks and agents. */
"use strict";
(() => {
  for (const board of document.querySelectorAll(".board")) {
    const body = board.querySelector("table.ranks tbody");
    const rows = [...body.rows];
    const heads = [...board.querySelectorAll("table.ranks thead th")];
    const value = (row, place) => {
      const cell = row.cells[place];
      const number = cell.dataset.v;
      return number === undefined ? cell.textContent.trim().toLowerCase()
        : number === "" ? null : Number(number);
    };
    heads.forEach((head, place) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        const first = head.dataset.first || "ascending";
        const way = was === first ? (first === "ascending" ? "descending" : "ascending") : first;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", way);
        const sign = way === "ascending" ? 1 : -1;
        /* What is not known comes last, whichever way. */
        rows.sort((a, b) => {
          const x = value(a, place), y = value(b, place);
          if (x === null || y === null) return (x === null) - (y === null);
          return sign * (x < y ? -1 : x > y ? 1 : 0);
        });
        body.append(...rows);
      });
    });
    const find = board.querySelector("input[type=search]");
    const show = board.querySelector("select");
    const count = board.querySelector("output");
    const filter = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.dataset.text;
        const fits = words.every((word) => text.includes(word))
          && (show.value === "all" || row.classList.contains(show.value));
        row.hidden = !fits;
        left += fits;
      }
      count.textContent = left === rows.length ? `${left} agents` : `${left} of ${rows.length} agents`;
    };
    find.addEventListener("input", filter);
    show.addEventListener("change", filter);
    board.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  /* -- the grid --------------------------------------------------------------------------- */
  const grids = JSON.parse(document.getElementById("grid-data").textContent);
  const canvas = document.getElementById("grid");
  if (!grids.length || !canvas) return;
  let data, tasks, agents, rates, means, places, width, height;
  const parse = (text) => {
    const row = [];
    for (let i = 0; i < text.length; i += 2) {
      const code = text.slice(i, i + 2);
      row.push(code === "--" ? NaN : parseInt(code, 16) / 100);
    }
    return row;
  };
  const mean = (place) => {
    let sum = 0, n = 0;
    for (const row of rates) if (!Number.isNaN(row[place])) { sum += row[place]; n += 1; }
    return n ? sum / n : 0;
  };
  const order = document.getElementById("grid-order");
  const choice = document.getElementById("grid-board");
  function choose() {
    data = grids[choice ? Number(choice.value) : 0];
    tasks = data.tasks.length;
    agents = data.agents.length;
    rates = data.rates.map(parse);
    means = data.tasks.map((_, place) => mean(place));
    width = Math.max(2, Math.min(16, Math.floor(1000 / tasks)));
    height = Math.max(8, Math.min(18, Math.floor(420 / agents)));
    arrange();
  }
  function arrange() {
    places = [...data.tasks.keys()];
    if (order.value === "hard") places.sort((a, b) => means[a] - means[b]);
    if (order.value === "name") places.sort((a, b) => data.tasks[a] < data.tasks[b] ? -1 : 1);
    draw();
  }
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const channels = (text) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = text;
    const hex = probe.fillStyle;
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  function draw() {
    const low = channels(color("--c2")), middle = channels(color("--soft")), high = channels(color("--c1"));
    const ratio = devicePixelRatio || 1;
    canvas.width = tasks * width * ratio;
    canvas.height = agents * height * ratio;
    canvas.style.width = `${tasks * width}px`;
    canvas.style.height = `${agents * height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    rates.forEach((row, y) => places.forEach((place, x) => {
      const rate = row[place];
      if (Number.isNaN(rate)) return;
      const [from, to, share] = rate < 0.5 ? [low, middle, 2 * rate] : [middle, high, 2 * rate - 1];
      const mix = from.map((part, i) => Math.round(part + (to[i] - part) * share));
      pen.fillStyle = `rgb(${mix.join(" ")})`;
      pen.fillRect(x * width, y * height, width - (width > 4 ? 1 : 0), height - 1);
    }));
  }
  order.addEventListener("change", arrange);
  if (choice) choice.addEventListener("change", choose);
  const tip = document.getElementById("tip");
  canvas.addEventListener("pointermove", (event) => {
    const x = Math.floor(event.offsetX / width), y = Math.floor(event.offsetY / height);
    const place = places[x];
    tip.hidden = place === undefined || !data.agents[y];
    if (tip.hidden) return;
    const rate = rates[y][place];
    const text = Number.isNaN(rate) ? "no attempt" : `${Math.round(100 * rate)}%`;
    tip.textContent = `${data.agents[y]}, ${data.tasks[place]}: ${text} (all agents ${Math.round(100 * means[place])}%)`;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.getElementById("scheme").addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  choose();
})();
