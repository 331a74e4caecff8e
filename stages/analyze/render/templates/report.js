"use strict";
// What the report does beyond being read: all of it is there without this, too.
// Whatever comes from outside is only ever read and written as text.
{
  const every = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text) element.textContent = text;
    return element;
  };
  const words = (element) => element.innerText.replace(/\s+/g, " ").trim();

  // Models: a filter by name, and a box for each.
  const names = new Map(every(".dots .who[data-m]").map((item) => [item.dataset.m, words(item).replace(/\*$/, "")]));
  const hidden = new Set();
  const bar = make("div", "bar");
  const search = make("input");
  search.type = "search";
  search.placeholder = "Filter models by name";
  search.setAttribute("aria-label", "Filter models by name");
  const pick = make("details", "pick");
  const count = make("summary");
  const boxes = make("div", "boxes");
  const all = make("button", "", "show all");
  all.type = "button";
  boxes.append(all);
  const boxOf = ([model, name]) => {
    const label = make("label");
    const box = make("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => {
      box.checked ? hidden.delete(model) : hidden.add(model);
      show();
    });
    label.append(box, document.createTextNode(` ${name}`));
    return label;
  };
  boxes.append(...[...names].map(boxOf));
  pick.append(count, boxes);
  bar.append(search, pick);

  function show() {
    const terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = (name) => terms.every((term) => name.toLowerCase().includes(term));
    const away = [...names].filter(([model, name]) => hidden.has(model) || !found(name));
    const off = new Set(away.map(([model]) => model));
    for (const item of every("[data-m]")) item.classList.toggle("off", off.has(item.dataset.m));
    count.textContent = `Models: ${names.size - off.size} of ${names.size}`;
    trials();
  }
  search.addEventListener("input", show);
  all.addEventListener("click", () => {
    hidden.clear();
    search.value = "";
    for (const box of every("input[type=checkbox]", boxes)) box.checked = true;
    show();
  });
  if (names.size > 1) document.getElementById("ranking").before(bar);

  // Tables: sorted by a click on a head, copied as CSV.
  const value = (cell) => {
    const data = cell.dataset.v;
    if (data === undefined) return words(cell);
    return data === "" ? NaN : Number(data.split(" ")[0]);
  };
  const compare = (one, other) => {
    if (typeof one === "string" || typeof other === "string") return String(one).localeCompare(String(other));
    return Number.isNaN(one) - Number.isNaN(other) || one - other;
  };
  function sort(table, column, head) {
    const body = table.tBodies[0];
    const numeric = [...body.rows].some((row) => row.cells[column].dataset.v !== undefined);
    const before = head.getAttribute("aria-sort");
    const falling = before ? before === "ascending" : numeric;
    const sign = falling ? -1 : 1;
    const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
    rows.sort(([one], [other]) => {
      const absent = Number.isNaN(one) - Number.isNaN(other); // last in either order
      return absent || sign * compare(one, other);
    });
    body.append(...rows.map(([, row]) => row));
    for (const other of every("th", table.tHead)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  }
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const harmless = (text) => (/^[=+\-@\t\r\n＝＋－＠]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  function csv(table) {
    const heads = [...table.tHead.rows[0].cells].map(words);
    const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("off"));
    const wide = heads.map((_, place) =>
      Math.max(1, ...rows.map((row) => (row.cells[place].dataset.v || "").split(" ").length))
    );
    const ends = ["", " lower", " upper"];
    const line = (cells) => cells.map((text) => quoted(harmless(text))).join(",");
    const head = heads.flatMap((text, place) => ends.slice(0, wide[place]).map((end) => text + end));
    const lines = rows.map((row) =>
      [...row.cells].flatMap((cell, place) => {
        const parts = cell.dataset.v === undefined ? [words(cell).replace(/\*$/, "")] : cell.dataset.v.split(" ");
        return ends.slice(0, wide[place]).map((_, part) => parts[part] || "");
      })
    );
    return [head, ...lines].map(line).join("\n") + "\n";
  }
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = make("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }
  const sortedBy = (table, head, column) => {
    const button = make("button", "sort");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, column, head));
    head.append(button);
  };
  const copyButton = (table) => {
    const button = make("button", "copy", "Copy as CSV");
    button.type = "button";
    const rest = () => {
      button.textContent = "Copy as CSV";
    };
    button.addEventListener("click", async () => {
      button.textContent = (await copy(csv(table))) ? "Copied" : "Could not copy";
      setTimeout(rest, 1500);
    });
    return button;
  };
  for (const table of every("table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => sortedBy(table, head, column));
    table.closest(".scroll").before(copyButton(table));
  }

  // Values where the pointer or the focus is.
  const tip = make("div", "tip");
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  for (const item of every("[title]")) {
    item.dataset.tip = item.title;
    if (item.matches("a, .flag")) item.setAttribute("aria-label", item.title);
    item.removeAttribute("title");
  }
  for (const item of every("svg title")) {
    item.parentElement.dataset.tip = item.textContent;
    item.parentElement.setAttribute("role", "img");
    item.parentElement.setAttribute("aria-label", item.textContent);
    item.remove();
  }
  const place = (x, y) => {
    const edge = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(x + 12, edge))}px`;
    tip.style.top = `${y + tip.offsetHeight + 24 > innerHeight ? y - tip.offsetHeight - 10 : y + 16}px`;
  };
  const tell = (target, x, y) => {
    const found = target.closest && target.closest("[data-tip]");
    tip.classList.toggle("on", Boolean(found));
    if (!found) return;
    tip.textContent = found.dataset.tip;
    place(x, y);
  };
  document.addEventListener("pointermove", (event) => tell(event.target, event.clientX, event.clientY));
  document.addEventListener("pointerleave", () => tip.classList.remove("on"));
  document.addEventListener("focusin", (event) => {
    const at = event.target.getBoundingClientRect();
    tell(event.target, at.left, at.bottom - 12);
  });
  document.addEventListener("focusout", () => tip.classList.remove("on"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.classList.remove("on");
  });

  // Sample trials: by outcome and task; a cell of a table leads to its own.
  const samples = every("#samples > details");
  const chosen = { status: "", task: "" };
  const left = make("span", "none");
  function trials() {
    let shown = 0;
    for (const item of samples) {
      const fits = Object.entries(chosen).every(([key, want]) => !want || item.dataset[key] === want);
      item.classList.toggle("other", !fits);
      shown += fits && !item.classList.contains("off");
    }
    left.textContent = `${shown} of ${samples.length} shown`;
  }
  const optionOf = (value, text = value) => {
    const option = make("option", "", text);
    option.value = value;
    return option;
  };
  const choiceOf = ([key, title]) => {
    const select = make("select");
    select.setAttribute("aria-label", title);
    const values = [...new Set(samples.map((item) => item.dataset[key]))].sort();
    select.append(optionOf("", title), ...values.map((text) => optionOf(text)));
    select.addEventListener("change", () => {
      chosen[key] = select.value;
      trials();
    });
    return select;
  };
  if (samples.length) {
    const row = make("div", "bar plain");
    row.append(...[["status", "all outcomes"], ["task", "all tasks"]].map(choiceOf), left);
    samples[0].before(row);
  }
  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const found = target && target.closest("#samples > details");
    if (!found) return;
    if (found.classList.contains("other")) {
      chosen.status = chosen.task = "";
      for (const select of every("#samples select")) select.value = "";
      trials();
    }
    found.open = true;
    found.scrollIntoView({ block: "center" });
    found.querySelector("summary").focus({ preventScroll: true });
  }
  addEventListener("hashchange", open);
  // A link that was followed before leads there again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open();
  });
  show();
  open();
}
