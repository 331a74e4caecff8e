"use strict";
// The third level: the table of trials, and one trial whole, beside another model's on the same question.
{
  const { h, format, visible } = explorer;

  const FILTERS = ["model", "task", "tier", "where", "status", "grep", "regex", "in", "sort"];
  const TEXTS = ["prompt", "response", "reasoning", "answer", "reference"];
  const PAGE = 50;
  const KINDS = { integer: true, single: true, number: true };

  const badge = (status) => h("span.badge", { class: `is-${status}` }, status);

  /** The filters of the address, as the endpoint takes them. */
  const filtersOf = (page) =>
    Object.fromEntries(FILTERS.filter((name) => name !== "sort").map((name) => [name, page.all(name)]));

  const paramsOf = (params) => (typeof params === "string" ? JSON.parse(params) : params);

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
  const trialLink = (page, row, more = {}) =>
    explorer.href("trial", {
      ...Object.fromEntries(FILTERS.map((name) => [name, page.all(name)])),
      columns: page.all("columns"),
      beside: page.all("beside"),
      evaluation: row.label,
      asked: row.task,
      point: typeof row.params === "string" ? row.params : JSON.stringify(row.params),
      trial: row.trial,
      repeat: row.repeat || null,
      cube: page.overview.cubes.length > 1 ? row.cube : null,
      n: row.n,
      ...more,
    });

  const statusPick = (page) => {
    const now = page.all("status");
    const { statuses, wrong } = page.overview;
    const isWrong = wrong.length === now.length && wrong.every((one) => now.includes(one));
    return [
      h(
        "div.choice",
        { role: "group", "aria-label": "Outcomes" },
        [["all", [], !now.length], ["right", ["correct"], now.length === 1 && now[0] === "correct"], [
          "wrong",
          wrong,
          isWrong,
        ]].map(([text, values, pressed]) =>
          h("button", {
            type: "button",
            id: `choice-status-${text}`,
            "aria-pressed": String(pressed),
            onclick: () => page.set({ status: values, offset: null }),
          }, text)
        ),
      ),
      explorer.pick(
        "status",
        now.length && !isWrong ? `Outcomes: ${now.length === 1 ? now[0] : now.length}` : "Outcomes",
        statuses.map((value) => ({ value, label: value, checked: now.includes(value) })),
        (value) =>
          page.set({
            status: now.includes(value) ? now.filter((one) => one !== value) : [...now, value],
            offset: null,
          }),
        now.length ? () => page.set({ status: null, offset: null }) : null,
      ),
    ];
  };

  const searchBox = (page) => {
    const regex = Boolean(page.get("regex"));
    const form = h(
      "form.search",
      {
        onsubmit: (event) => {
          event.preventDefault();
          const data = new FormData(form);
          const text = data.get("text");
          page.set({
            grep: data.get("regex") ? null : text,
            regex: data.get("regex") ? text : null,
            in: data.get("in") || null,
            offset: null,
          });
        },
      },
      h("input", {
        type: "search",
        name: "text",
        id: "search",
        placeholder: "Search in texts …",
        "aria-label": "Search in texts",
        value: page.get("grep") || page.get("regex"),
      }),
      h(
        "label.check",
        { title: "A regular expression" },
        h("input", { type: "checkbox", name: "regex", checked: regex }),
        " regex",
      ),
      h(
        "select",
        { name: "in", id: "search-in", "aria-label": "Where to search" },
        [["", "in prompt, response, reasoning"], ...TEXTS.map((name) => [name, `in ${name}`])].map(([value, text]) =>
          h("option", { value, selected: value === page.get("in") }, text)
        ),
      ),
      h("button", { type: "submit" }, "Search"),
    );
    return explorer.bundle ? null : form;
  };

  const controls = (page) =>
    explorer.filters(
      page,
      { models: true, names: ["tokens", "latency", "trial", "repeat"] },
      statusPick(page),
      searchBox(page),
    );

  const columnsOf = (page, answer, searched) => {
    const fixed = [
      {
        key: "label",
        title: "model",
        left: true,
        fixed: true,
        value: (row) => row.label,
        show: (row) => h("a.name.oneline", { href: trialLink(page, row), title: row.label }, row.label),
      },
      {
        key: "status",
        title: "outcome",
        left: true,
        fixed: true,
        value: (row) => row.status,
        show: (row) => badge(row.status),
      },
      { key: "task", title: "task", left: true, value: (row) => row.task },
      {
        key: "params",
        title: "point",
        left: true,
        extra: !page.overview.tasks.some((one) => one.params.some((param) => param.levels.length > 1)),
        fixed: true,
        value: (row) => row.params,
        show: (row) =>
          h(
            "span.point",
            { title: format.params(paramsOf(row.params)) },
            telling(page, row.task, paramsOf(row.params)),
          ),
      },
      {
        key: "trial",
        title: "trial",
        value: (row) => row.trial,
        show: (row) => `${row.trial}${row.repeat ? `.${row.repeat}` : ""}`,
      },
    ];
    const chosen = page.get("columns")
      ? page.get("columns").split(",")
      : ["prompt", "reference", "answer", "tokens", "latency"];
    const skipped = new Set(["cube", "model", "task", "params", "trial", "repeat", "status", "eval_id"]);
    const rest = answer.columns.filter((one) =>
      !skipped.has(one.name) || (one.name === "cube" && page.overview.cubes.length > 1)
    ).map((one) => ({
      key: one.name,
      title: format.plain(one.name),
      left: !KINDS[one.kind],
      extra: !chosen.includes(one.name),
      hint: one.meaning,
      wide: TEXTS.includes(one.name) && !["answer", "reference"].includes(one.name),
      short: ["answer", "reference"].includes(one.name),
      descending: Boolean(KINDS[one.kind]),
      fixed: searched || ["texts", "messages", "opinions"].includes(one.kind) ||
        (one.source !== "plan" && one.source !== "cube"),
      value: (row) => row[one.name],
      show: (row) => {
        const value = row[one.name];
        if (value === null || value === undefined) return h("span.note", {}, format.absent);
        if (one.name === "latency" || one.name === "first_token") return format.seconds(value);
        if (typeof value === "number") return format.number(value);
        return ["prompt", "reference", "answer"].includes(one.name)
          ? h("span.clamped", { title: value }, visible(value))
          : visible(value);
      },
    }));
    const place = (column) => (chosen.includes(column.key) ? chosen.indexOf(column.key) : chosen.length);
    return [
      ...fixed.map((one) => ({ ...one, fixed: one.fixed || searched })),
      ...rest.sort((one, other) => place(one) - place(other)),
    ];
  };

  explorer.view({
    name: "trials",
    title: "Trials",
    level: "trials",
    ready: () => !explorer.bundle || explorer.bundle.trials.length > 0,
    controls,
    async render(root, page) {
      const offset = Number(page.get("offset") || 0);
      const searched = Boolean(page.get("grep") || page.get("regex"));
      const columns = page.get("columns");
      const standing = new Set(["label", "task", "params", "trial", "status"]);
      const asked = columns ? columns.split(",").filter((name) => !standing.has(name)).join(",") : "";
      const answer = await page.ask("trials", {
        ...filtersOf(page),
        sort: searched ? null : page.get("sort"),
        offset,
        limit: PAGE,
        columns: asked || null,
      });
      const beyond = !searched && !answer.rows.length && offset > 0;
      const lastPage = beyond && answer.count !== null ? Math.max(0, Math.ceil(answer.count / PAGE) - 1) * PAGE : 0;
      const table = explorer.table(page, {
        name: "trials",
        caption: "Trials",
        columns: columnsOf(page, answer, searched),
        rows: answer.rows,
        sorted: true,
        empty: beyond ? "There are not so many trials." : null,
        mark: (row) => (row.status === "correct" ? "right" : ""),
      });
      const first = answer.rows.length ? answer.rows[0].n + 1 : 0;
      const last = answer.rows.length ? answer.rows[answer.rows.length - 1].n + 1 : 0;
      const text = beyond
        ? (answer.count === null ? "" : `There are only ${format.number(answer.count)}.`)
        : searched
        ? `${answer.rows.length} found${
          answer.next === null ? "" : `, ${format.number(answer.next)} trials looked through`
        }`
        : `${format.number(first)} – ${format.number(last)}${
          answer.count === null ? "" : ` of ${format.number(answer.count)}`
        }`;
      const pager = h(
        "div.pager",
        {},
        h("button", {
          type: "button",
          id: "previous",
          disabled: offset === 0,
          onclick: () => (searched
            ? history.back()
            : page.set({ offset: (beyond ? lastPage : Math.max(0, offset - PAGE)) || null })),
        }, "‹ Previous"),
        h("span.note", {}, text),
        h("button", {
          type: "button",
          id: "next",
          disabled: answer.next === null,
          onclick: () => page.set({ offset: answer.next }),
        }, searched ? "Search on ›" : "Next ›"),
      );
      root.append(
        controls(page),
        table,
        pager,
        answer.notes.length ? h("ul.notes", {}, answer.notes.map((note) => h("li", {}, note))) : "",
        h(
          "p.keys.note",
          {},
          h("kbd", {}, "j"),
          " ",
          h("kbd", {}, "k"),
          " down and up, ",
          h("kbd", {}, "Enter"),
          " opens, ",
          h("kbd", {}, "/"),
          " searches",
        ),
      );
    },
    key(event) {
      const links = [...document.querySelectorAll("#main tbody a.name")];
      const now = links.indexOf(document.activeElement);
      if (event.key === "j" || event.key === "k") {
        const next = links[now < 0 ? 0 : Math.min(links.length - 1, Math.max(0, now + (event.key === "j" ? 1 : -1)))];
        next?.focus();
        next?.scrollIntoView({ block: "nearest" });
        return true;
      }
      if (event.key === "/") {
        document.getElementById("search")?.focus();
        return true;
      }
      return false;
    },
  });

  // One trial

  /** A reply, with the answer marked where it was read. Line breaks that it begins with are left out. */
  const marked = (trial) => {
    const text = trial.response;
    const begin = text.length - text.replace(/^\n+/, "").length;
    const [start, end] = trial.answer_place || [begin, begin];
    if (start === end) return visible(text.slice(begin));
    const right = trial.status === "correct";
    return [
      visible(text.slice(begin, start)),
      h("mark", {
        class: right ? "good" : "bad",
        title: right ? "the answer that was read, which is right" : "the answer that was read",
      }, text.slice(start, end)),
      visible(text.slice(end)),
    ];
  };

  const block = (title, kind, ...content) =>
    h("section.text", { class: kind }, h("h3", {}, title), h("pre", { tabindex: "0" }, ...content));

  const promptOf = (trial) => trial.messages.map((message) => block(message.role, "prompt", visible(message.content)));

  const replyOf = (trial, open) => {
    return [
      trial.reasoning
        ? h(
          "details.reasoning",
          { id: `reasoning-${trial.label}`, open },
          h("summary", {}, `Reasoning, ${format.number(trial.reasoning.length)} characters`),
          h("pre", { tabindex: "0" }, visible(trial.reasoning)),
        )
        : null,
      trial.response === null
        ? h(
          "p.note",
          {},
          trial.replies
            ? "The cache does not hold this reply."
            : "The reply is not here: no cache is at hand. Give this sweep's with --cache.",
        )
        : block("response", "response", trial.response ? marked(trial) : h("span.note", {}, "(empty)")),
    ];
  };

  const facts = (trial) =>
    h(
      "dl.facts",
      {},
      [
        ["read", trial.parsed === null ? h("span.note", {}, "nothing") : h("code", {}, visible(trial.parsed))],
        ["reference", trial.reference ? h("code", {}, visible(trial.reference)) : h("span.note", {}, "none")],
        ["tokens", trial.tokens < 0 ? format.absent : format.number(trial.tokens)],
        ["latency", format.seconds(trial.latency)],
        trial.first_token === null ? null : ["first token", format.seconds(trial.first_token)],
        ...Object.entries(trial.layers).map(([name, score]) => [name, format.fixed(score, 2)]),
        trial.row === null ? null : ["row", `${trial.row}${trial.row_id ? ` (${trial.row_id})` : ""}`],
      ].filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    );

  const opinions = (trial) => (trial.opinions.length
    ? h(
      "table.opinions",
      {},
      h(
        "thead",
        {},
        h("tr", {}, ["judge", "repeat", "score", "reason"].map((name) => h("th", { class: "left" }, name))),
      ),
      h(
        "tbody",
        {},
        trial.opinions.map((one) =>
          h(
            "tr",
            {},
            h("td.left", {}, visible(one.judge)),
            h("td.left", {}, one.repeat),
            h("td.left", {}, one.score === null ? format.absent : one.score),
            h("td.left.wide", {}, visible(one.reason || "")),
          )
        ),
      ),
    )
    : null);

  const identity = (page) =>
    Object.fromEntries(
      ["evaluation", "asked", "point", "trial", "repeat", "cube"].map((name) => [name, page.all(name)]),
    );

  const column = (page, trial, { prompt, open }) =>
    h(
      "article.reply",
      { "aria-label": trial.label },
      h("header", {}, h("h2", {}, trial.label), badge(trial.status)),
      facts(trial),
      prompt ? promptOf(trial) : null,
      replyOf(trial, open),
      opinions(trial),
      trial.cut ? h("p.note", {}, "Cut: evalcube show prints all of it.") : null,
    );

  /** The first row of the table from a number on that is meant; undefined if another page is shown by then. */
  const fromTable = async (page, offset, meant, many) => {
    const here = location.hash;
    const sort = page.get("grep") || page.get("regex") ? null : page.get("sort");
    for (let next = offset; next !== null && next >= 0;) {
      const answer = await page.ask("trials", {
        ...filtersOf(page),
        sort,
        offset: next,
        limit: many,
        columns: "tokens",
      });
      if (location.hash !== here) return undefined;
      const row = answer.rows.find(meant);
      if (row) return row;
      next = answer.next; // a search gives up after some time, and then goes on
    }
    return null;
  };

  /** Go to a trial that follows in the table. */
  const step = async (page, to, statuses = null) => {
    const n = page.get("n");
    if (!n) return; // nobody knows where in which table it is
    if (to === "previous" && (page.get("grep") || page.get("regex"))) { // which cannot be counted backwards
      history.back();
      return;
    }
    const told = document.getElementById("told");
    const say = (text) => {
      if (told) told.textContent = text;
    };
    const filters = filtersOf(page);
    if (statuses && filters.status.length) statuses = statuses.filter((one) => filters.status.includes(one));
    if (statuses && !statuses.length) {
      say("No wrong one fulfils the filters.");
      return;
    }
    say("Looking …");
    try {
      const row = await fromTable(
        page,
        Number(n) + (to === "next" ? 1 : -1),
        (one) => !statuses || statuses.includes(one.status),
        statuses ? 200 : 1,
      );
      if (row) location.hash = trialLink(page, row);
      else if (row === null) {
        say(
          to === "next"
            ? (statuses ? "That was the last wrong one." : "That was the last one.")
            : "That was the first one.",
        );
      }
    } catch (error) {
      say(error.message);
    }
  };

  /** Go to the next wrong one of those that fulfil the filters, which stay as they are. */
  const nextWrong = (page) => step(page, "next", page.overview.wrong);

  const copied = async (event) => {
    const text = location.href;
    try {
      await navigator.clipboard.writeText(text);
      event.target.textContent = "Copied";
    } catch {
      prompt("The link to this trial:", text);
    }
  };

  explorer.view({
    name: "trial",
    title: "Trial",
    level: "trials",
    hidden: true,
    async render(root, page) {
      const here = identity(page);
      const trial = await page.ask("trial", here);
      const beside = page.get("beside") && page.get("beside") !== trial.label ? page.get("beside") : "";
      const other = beside
        ? await page.ask("trial", { ...here, evaluation: beside, cube: null }).catch((error) => error)
        : null;
      const back = explorer.href("trials", {
        ...Object.fromEntries(FILTERS.map((name) => [name, page.all(name)])),
        columns: page.all("columns"),
        offset: page.get("n") ? Math.floor(Number(page.get("n")) / PAGE) * PAGE || null : null,
      });
      const open = page.get("reasoning") === "open";
      const select = h(
        "label.select",
        {},
        "beside ",
        h(
          "select",
          { id: "beside", onchange: (event) => page.set({ beside: event.target.value || null }) },
          h("option", { value: "" }, "no other model"),
          beside ? h("option", { value: beside, selected: true }, beside) : null,
        ),
      );
      const alike = other && !(other instanceof Error) &&
        JSON.stringify(other.messages) === JSON.stringify(trial.messages);
      root.append(
        h(
          "div.crumbs",
          {},
          h("a", { href: back, id: "back" }, "‹ Trials"),
          h(
            "span",
            {},
            [
              trial.task,
              telling(page, trial.task, trial.params),
              `trial ${trial.trial}`,
              trial.repeat ? `repeat ${trial.repeat}` : null,
              ...trial.tiers,
            ].filter(Boolean).join(" · "),
          ),
        ),
        h(
          "div.filters",
          {},
          h("button", {
            type: "button",
            id: "step-previous",
            disabled: !page.get("n"),
            onclick: () => step(page, "previous"),
          }, "‹ Previous"),
          h(
            "button",
            { type: "button", id: "step-next", disabled: !page.get("n"), onclick: () => step(page, "next") },
            "Next ›",
          ),
          h(
            "button",
            { type: "button", id: "step-wrong", disabled: !page.get("n"), onclick: () => nextWrong(page) },
            "Next wrong ›",
          ),
          select,
          h("button", { type: "button", id: "copy", onclick: copied }, "Copy link"),
          h("span.note", { id: "told", role: "status" }),
        ),
        ...(alike ? [h("div.shared", {}, promptOf(trial))] : []), // a null would be shown as a word
        h(
          "div",
          { class: other ? "beside" : "alone" },
          column(page, trial, { prompt: !alike, open }),
          other instanceof Error
            ? h("article.reply", {}, h("h2", {}, beside), h("p.problem", {}, other.message))
            : other
            ? column(page, other, { prompt: !alike, open })
            : null,
        ),
        h(
          "details.more",
          { id: "more" },
          h("summary", {}, "All parameters and keys"),
          h(
            "dl.facts",
            {},
            [
              ...Object.entries(trial.params).map((
                [name, value],
              ) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]),
              ["difficulty", format.number(trial.difficulty)],
              ["template", trial.template],
              ["sampler", trial.sampler],
              ["cube", trial.address],
              ["key", trial.digest],
            ]
              .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("code", {}, visible(value))))),
          ),
        ),
        h(
          "p.keys.note",
          {},
          h("kbd", {}, "j"),
          " ",
          h("kbd", {}, "k"),
          " next and previous, ",
          h("kbd", {}, "w"),
          " next wrong, ",
          h("kbd", {}, "r"),
          " reasoning, ",
          h("kbd", {}, "u"),
          " back to the table",
        ),
      );
      // Who else answered this question comes when it is there: it costs a look at each model.
      page.ask("same", here).then((answer) => {
        const rows = answer.rows.filter((row) => row.label !== trial.label && row.status !== "missing");
        const right = rows.filter((row) => row.status === "correct").length;
        const others = rows.length
          ? `${right} of ${rows.length} other${rows.length === 1 ? " is" : "s are"} right`
          : `none ${explorer.bundle ? "in this bundle" : "has answered"}`;
        select.lastElementChild.replaceChildren(
          h("option", { value: "" }, `no other model (${others})`),
          ...rows.map((row) => h("option", { value: row.label }, `${row.label}: ${row.status}`)),
        );
        select.lastElementChild.value = beside;
      }, () => {});
    },
    key(event, page) {
      const act = {
        j: () => step(page, "next"),
        ArrowRight: () => step(page, "next"),
        k: () => step(page, "previous"),
        ArrowLeft: () => step(page, "previous"),
        w: () => nextWrong(page),
        r: () => page.set({ reasoning: page.get("reasoning") === "open" ? null : "open" }, { replace: true }),
        u: () => document.getElementById("back")?.click(),
      }[event.key];
      act?.();
      return Boolean(act);
    },
  });
}
