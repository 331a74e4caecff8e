"use strict";
// The table of trials: filters, search, pages and keys.
{
  const { h, format, visible } = explorer;

  const FILTERS = ["model", "task", "tier", "where", "status", "grep", "regex", "in", "sort"];
  const TEXTS = ["prompt", "response", "reasoning", "answer", "reference"];
  const PAGE = 50;
  const NUMBERS = ["integer", "single", "number"];

  // What the view of one trial needs too

  /** All that the address says of the table. */
  const stateOf = (page) => ({
    ...Object.fromEntries(FILTERS.map((name) => [name, page.all(name)])),
    columns: page.all("columns"),
  });

  /** The filters of the address, as the endpoint takes them. */
  const filtersOf = (page) =>
    Object.fromEntries(FILTERS.filter((name) => name !== "sort").map((name) => [name, page.all(name)]));

  /** Parameters in which points of a task differ; if they do in none all, and of a data set its file. */
  const telling = (page, task, params) => {
    const known = page.overview.tasks.find((one) => one.label === task)?.params || [];
    const differ = new Set(known.filter((one) => one.levels.length > 1).map((one) => one.name.replace(/^param_/, "")));
    const found = Object.entries(params).filter(([name]) => differ.has(name));
    const all = "file" in params && "sha256" in params
      ? [["file", String(params.file).split("/").pop()]]
      : Object.entries(params);
    return format.params(Object.fromEntries(found.length ? found : all));
  };

  /** The address of a trial; what filters say goes along, so that the next one is the next of them. */
  const trialLink = (page, row) =>
    explorer.href("trial", {
      ...stateOf(page),
      beside: page.all("beside"),
      evaluation: row.label,
      asked: row.task,
      point: typeof row.params === "string" ? row.params : JSON.stringify(row.params),
      trial: row.trial,
      repeat: row.repeat || null,
      cube: page.overview.cubes.length > 1 ? row.cube : null,
      n: row.n,
    });

  explorer.trials = {
    PAGE,
    stateOf,
    filtersOf,
    telling,
    trialLink,
    badge: (status) => h("span.badge", { class: `is-${status}` }, status),
    searched: (page) => Boolean(page.get("grep") || page.get("regex")),
    /** What keys do, below a view: a key stands in a list, and texts between keys by themselves. */
    keys: (...parts) => h("p.keys.note", {}, parts.map((part) => Array.isArray(part) ? h("kbd", {}, ...part) : part)),
  };
  const { badge, searched } = explorer.trials;

  // Filters

  const outcomeChoice = (page, now, isWrong) => {
    const options = [
      ["all", [], !now.length],
      ["right", ["correct"], now.length === 1 && now[0] === "correct"],
      ["wrong", page.overview.wrong, isWrong],
    ];
    const button = ([text, values, pressed]) =>
      h("button", {
        type: "button",
        id: `choice-status-${text}`,
        "aria-pressed": String(pressed),
        onclick: () => page.set({ status: values, offset: null }),
      }, text);
    return h("div.choice", { role: "group", "aria-label": "Outcomes" }, options.map(button));
  };

  const outcomeFilters = (page) => {
    const now = page.all("status");
    const { statuses, wrong } = page.overview;
    const isWrong = wrong.length === now.length && wrong.every((one) => now.includes(one));
    const put = (status) => page.set({ status, offset: null });
    const pick = explorer.pick(
      "status",
      now.length && !isWrong ? `Outcomes: ${now.length === 1 ? now[0] : now.length}` : "Outcomes",
      statuses.map((value) => ({ value, label: value, checked: now.includes(value) })),
      (value) => put(now.includes(value) ? now.filter((one) => one !== value) : [...now, value]),
      now.length ? () => put(null) : null,
    );
    return [outcomeChoice(page, now, isWrong), pick];
  };

  const searchPlace = (page) => {
    const options = [["", "in prompt, response, reasoning"], ...TEXTS.map((name) => [name, `in ${name}`])];
    return h(
      "select",
      { name: "in", id: "search-in", "aria-label": "Where to search" },
      options.map(([value, text]) => h("option", { value, selected: value === page.get("in") }, text)),
    );
  };

  const search = (page, event) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const [text, regex] = [data.get("text"), data.get("regex")];
    page.set({ grep: regex ? null : text, regex: regex ? text : null, in: data.get("in") || null, offset: null });
  };

  const searchBox = (page) => {
    const box = { type: "checkbox", name: "regex", checked: Boolean(page.get("regex")) };
    return h(
      "form.search",
      { onsubmit: (event) => search(page, event) },
      h("input", {
        type: "search",
        name: "text",
        id: "search",
        placeholder: "Search in texts …",
        "aria-label": "Search in texts",
        value: page.get("grep") || page.get("regex"),
      }),
      h("label.check", { title: "A regular expression" }, h("input", box), " regex"),
      searchPlace(page),
      h("button", { type: "submit" }, "Search"),
    );
  };

  const controls = (page) => {
    const wanted = { models: true, names: ["tokens", "latency", "trial", "repeat"] };
    return explorer.filters(page, wanted, outcomeFilters(page), explorer.bundle ? null : searchBox(page));
  };

  // Columns

  const paramsOf = (params) => (typeof params === "string" ? JSON.parse(params) : params);

  const pointColumn = (page) => {
    const show = (row) => {
      const params = paramsOf(row.params);
      return h("span.point", { title: format.params(params) }, telling(page, row.task, params));
    };
    const varied = page.overview.tasks.some((one) => one.params.some((param) => param.levels.length > 1));
    return { key: "params", title: "point", left: true, extra: !varied, fixed: true, value: (row) => row.params, show };
  };

  /** The columns that every answer has; of a search none can be sorted by. */
  const standingColumns = (page) => {
    const link = (row) => h("a.name.oneline", { href: trialLink(page, row), title: row.label }, row.label);
    const trial = (row) => `${row.trial}${row.repeat ? `.${row.repeat}` : ""}`;
    const left = { left: true, fixed: true };
    return [
      { ...left, key: "label", title: "model", value: (row) => row.label, show: link },
      { ...left, key: "status", title: "outcome", value: (row) => row.status, show: (row) => badge(row.status) },
      { key: "task", title: "task", left: true, fixed: searched(page), value: (row) => row.task },
      pointColumn(page),
      { key: "trial", title: "trial", fixed: searched(page), value: (row) => row.trial, show: trial },
    ];
  };

  const shown = (name, value) => {
    if (value === null || value === undefined) return h("span.note", {}, format.absent);
    if (name === "latency" || name === "first_token") return format.seconds(value);
    if (typeof value === "number") return format.number(value);
    const clamped = ["prompt", "response", "reference", "answer"].includes(name);
    return clamped ? h("span.clamped", { title: value }, visible(value)) : visible(value);
  };

  /** A column as the endpoint describes it. */
  const describedColumn = (page, chosen, { name, kind, meaning, source }) => {
    const number = NUMBERS.includes(kind);
    const short = ["answer", "reference"].includes(name);
    const sortable = !["texts", "messages", "opinions"].includes(kind) && (source === "plan" || source === "cube");
    return {
      key: name,
      title: format.plain(name),
      left: !number,
      extra: !chosen.includes(name),
      hint: meaning,
      wide: TEXTS.includes(name) && !short,
      short,
      descending: number,
      fixed: searched(page) || !sortable,
      value: (row) => row[name],
      show: (row) => shown(name, row[name]),
    };
  };

  const columnsOf = (page, answer) => {
    const several = page.overview.cubes.length > 1;
    const defaults = "prompt,reference,answer,tokens,latency";
    const named = page.get("columns");
    const told = (name) => answer.rows.some((row) => ![null, undefined, ""].includes(row[name]));
    // What no trial has gives way to the reply.
    const there = defaults.split(",").filter((name) => !answer.rows.length || told(name));
    const read = there.includes("reference") && there.includes("answer");
    const chosen = named ? named.split(",") : read ? there : [...there, "response"];
    const skipped = new Set(["cube", "model", "task", "params", "trial", "repeat", "status", "eval_id"]);
    const wanted = answer.columns.filter(({ name }) => !skipped.has(name) || (name === "cube" && several));
    const place = ({ key }) => (chosen.includes(key) ? chosen.indexOf(key) : chosen.length);
    const described = wanted.map((one) => describedColumn(page, chosen, one));
    return [...standingColumns(page), ...described.sort((one, other) => place(one) - place(other))];
  };

  // The view

  /** Which of how many trials are shown; `last` is where the last page begins, if the address is beyond it. */
  const placeOf = (page, answer) => {
    const offset = Number(page.get("offset") || 0);
    const beyond = !searched(page) && !answer.rows.length && offset > 0;
    const last = beyond && answer.count !== null ? Math.max(0, Math.ceil(answer.count / PAGE) - 1) * PAGE : 0;
    return { offset, beyond, last };
  };

  const shownText = (page, { rows, count, next }, beyond) => {
    if (beyond) return count === null ? "" : `There are only ${format.number(count)}.`;
    if (searched(page)) {
      return `${rows.length} found${next === null ? "" : `, ${format.number(next)} trials looked through`}`;
    }
    const [first, last] = rows.length ? [rows[0].n + 1, rows[rows.length - 1].n + 1] : [0, 0];
    const of = count === null ? "" : ` of ${format.number(count)}`;
    return `${format.number(first)} – ${format.number(last)}${of}`;
  };

  const pager = (page, answer) => {
    const { offset, beyond, last } = placeOf(page, answer);
    // A search cannot be counted backwards.
    const back = () =>
      searched(page) ? history.back() : page.set({ offset: (beyond ? last : Math.max(0, offset - PAGE)) || null });
    const on = () => page.set({ offset: answer.next });
    const button = (id, disabled, onclick, text) => h("button", { type: "button", id, disabled, onclick }, text);
    return h(
      "div.pager",
      {},
      button("previous", offset === 0, back, "‹ Previous"),
      h("span.note", {}, shownText(page, answer, beyond)),
      button("next", answer.next === null, on, searched(page) ? "Search on ›" : "Next ›"),
    );
  };

  const ask = (page) => {
    const columns = page.get("columns");
    const standing = new Set(["label", "task", "params", "trial", "status"]);
    const asked = columns ? columns.split(",").filter((name) => !standing.has(name)).join(",") : "";
    return page.ask("trials", {
      ...filtersOf(page),
      sort: searched(page) ? null : page.get("sort"),
      offset: Number(page.get("offset") || 0),
      limit: PAGE,
      columns: asked || null,
    });
  };

  /** Go to the trial of the table that is so many lines down. */
  const move = (by) => {
    const links = [...document.querySelectorAll("#main tbody a.name")];
    const now = links.indexOf(document.activeElement);
    const next = links[now < 0 ? 0 : Math.min(links.length - 1, Math.max(0, now + by))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };

  explorer.view({
    name: "trials",
    title: "Trials",
    level: "trials",
    ready: () => !explorer.bundle || explorer.bundle.trials.length > 0,
    controls,
    async render(root, page) {
      const answer = await ask(page);
      const table = explorer.table(page, {
        name: "trials",
        caption: "Trials",
        columns: columnsOf(page, answer),
        rows: answer.rows,
        sorted: true,
        empty: placeOf(page, answer).beyond ? "There are fewer trials than that." : null,
        mark: (row) => (row.status === "correct" ? "right" : ""),
      });
      const notes = answer.notes.length ? h("ul.notes", {}, answer.notes.map((note) => h("li", {}, note))) : "";
      const keys = explorer.trials.keys(["j"], " ", ["k"], " down and up, ", ["Enter"], " opens, ", ["/"], " searches");
      root.append(controls(page), table, pager(page, answer), notes, keys);
    },
    key(event) {
      const act = {
        j: () => move(1),
        k: () => move(-1),
        "/": () => document.getElementById("search")?.focus(),
      }[event.key];
      act?.();
      return Boolean(act);
    },
  });
}
