"use strict";
// One trial whole, beside another model's on the same question; keys lead to the next one of the table.
{
  const { h, format, visible } = explorer;
  const { PAGE, badge, filtersOf, keys, searched, stateOf, telling, trialLink } = explorer.trials;

  // What is shown of a trial

  /** A reply, with the answer marked where it was read. Line breaks that it begins with are left out. */
  const marked = (trial) => {
    const text = trial.response;
    const begin = text.length - text.replace(/^\n+/, "").length;
    const [start, end] = trial.answer_place || [begin, begin];
    if (start === end) return visible(text.slice(begin));
    const right = trial.status === "correct";
    const title = right ? "the answer that was read, which is right" : "the answer that was read";
    return [
      visible(text.slice(begin, start)),
      h("mark", { class: right ? "good" : "bad", title }, text.slice(start, end)),
      visible(text.slice(end)),
    ];
  };

  const block = (title, kind, ...content) =>
    h("section.text", { class: kind }, h("h2", {}, title), h("pre", { tabindex: "0" }, ...content));

  const promptOf = (trial) => trial.messages.map((message) => block(message.role, "prompt", visible(message.content)));

  const reasoningOf = (trial, open) =>
    h(
      "details.reasoning",
      { id: `reasoning-${trial.label}`, open },
      h("summary", {}, `Reasoning, ${format.number(trial.reasoning.length)} characters`),
      h("pre", { tabindex: "0" }, visible(trial.reasoning)),
    );

  const responseOf = (trial) => {
    if (trial.response === null) {
      const uncached = "The reply is not here: no cache is at hand. Give this sweep's with --cache.";
      return h("p.note", {}, trial.replies ? "The cache does not hold this reply." : uncached);
    }
    return block("response", "response", trial.response ? marked(trial) : h("span.note", {}, "(empty)"));
  };

  /** Names and values; each value is an element or a text. */
  const listed = (pairs) =>
    h("dl.facts", {}, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

  const code = (value) => h("code", {}, visible(value));

  const facts = (trial) =>
    listed([
      ["read", trial.parsed === null ? h("span.note", {}, "nothing") : code(trial.parsed)],
      ["reference", trial.reference ? code(trial.reference) : h("span.note", {}, "none")],
      trial.fault ? ["wrong by", visible(trial.fault)] : null,
      ["tokens", trial.tokens < 0 ? format.absent : format.number(trial.tokens)],
      ...["prompt", "cached", "reasoning"]
        .map((name) => [`${name} tokens`, trial[`${name}_tokens`]])
        .filter(([, count]) => count !== null)
        .map(([name, count]) => [name, format.number(count)]),
      ["latency", format.seconds(trial.latency)],
      trial.first_token === null ? null : ["first token", format.seconds(trial.first_token)],
      trial.read_as ? ["read", trial.read_as] : null,
      trial.looping ? ["end", "repeats itself"] : null,
      trial.ending ? ["end", visible(trial.ending)] : null,
      trial.provider ? ["answered by", visible(trial.provider)] : null,
      ...Object.entries(trial.layers).map(([name, score]) => [name, format.fixed(score, 2)]),
      trial.row === null ? null : ["row", `${trial.row}${trial.row_id ? ` (${trial.row_id})` : ""}`],
    ].filter(Boolean));

  const opinion = (one) =>
    h(
      "tr",
      {},
      h("td.left", {}, visible(one.judge)),
      h("td.left", {}, one.repeat),
      h("td.left", {}, one.score === null ? format.absent : one.score),
      h("td.left.wide", {}, visible(one.reason || "")),
    );

  const opinions = (trial) => {
    if (!trial.opinions.length) return null;
    const heads = ["judge", "repeat", "score", "reason"].map((name) => h("th", { class: "left" }, name));
    return h("table.opinions", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, trial.opinions.map(opinion)));
  };

  const column = (trial, { prompt, open }) =>
    h(
      "article.reply",
      { "aria-label": trial.label },
      h("header", {}, h("h2", {}, trial.label), badge(trial.status)),
      facts(trial),
      prompt ? promptOf(trial) : null,
      trial.reasoning ? reasoningOf(trial, open) : null,
      responseOf(trial),
      opinions(trial),
      trial.cut ? h("p.note", {}, "Cut: evalcube show prints all of it.") : null,
    );

  const parameters = (trial) => {
    const told = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
    const pairs = [
      ...Object.entries(trial.params).map(([name, value]) => [name, told(value)]),
      ["difficulty", format.number(trial.difficulty)],
      ["template", trial.template],
      ["sampler", trial.sampler],
      ["cube", trial.address],
      ["key", trial.digest],
    ];
    return h(
      "details.more",
      { id: "more" },
      h("summary", {}, "All parameters and keys"),
      listed(pairs.map(([name, value]) => [name, code(value)])),
    );
  };

  // The way to other trials

  /** The first row of the table from a number on that is meant; undefined if another page is shown by then. */
  const fromTable = async (page, offset, meant, many) => {
    const here = location.hash;
    const sort = searched(page) ? null : page.get("sort");
    for (let next = offset; next !== null && next >= 0;) {
      const asked = { ...filtersOf(page), sort, offset: next, limit: many, columns: "tokens" };
      const answer = await page.ask("trials", asked);
      if (location.hash !== here) return undefined;
      const row = answer.rows.find(meant);
      if (row) return row;
      next = answer.next; // a search gives up after some time, and then goes on
    }
    return null;
  };

  const say = (text) => {
    const told = document.getElementById("told");
    if (told) told.textContent = text;
  };

  /** Go to a trial of the table by its number, or to the first from there on that has one of some outcomes. */
  const seek = async (page, offset, statuses, nothing) => {
    say("Looking …");
    const meant = (one) => !statuses || statuses.includes(one.status);
    try {
      const row = await fromTable(page, offset, meant, statuses ? 200 : 1);
      if (row) location.hash = trialLink(page, row);
      else if (row === null) say(nothing);
    } catch (error) {
      say(error.message);
    }
  };

  // Without a number nobody knows where in which table a trial is.
  const numbered = (page) => (page.get("n") ? Number(page.get("n")) : null);

  const next = (page) => numbered(page) !== null && seek(page, numbered(page) + 1, null, "That was the last one.");

  const previous = (page) => {
    if (numbered(page) === null) return;
    if (searched(page)) history.back(); // a search cannot be counted backwards
    else seek(page, numbered(page) - 1, null, "That was the first one.");
  };

  /** Go to the next wrong one of those that fulfil the filters, which stay as they are. */
  const nextWrong = (page) => {
    if (numbered(page) === null) return;
    const { status } = filtersOf(page);
    const wrong = page.overview.wrong.filter((one) => !status.length || status.includes(one));
    if (wrong.length) seek(page, numbered(page) + 1, wrong, "That was the last wrong one.");
    else say("No wrong one fulfils the filters.");
  };

  const copied = async (event) => {
    const text = location.href;
    try {
      await navigator.clipboard.writeText(text);
      event.target.textContent = "Copied";
    } catch {
      prompt("The link to this trial:", text);
    }
  };

  // The view

  const back = (page) => {
    const n = page.get("n");
    return explorer.href("trials", {
      ...stateOf(page),
      offset: n ? Math.floor(Number(n) / PAGE) * PAGE || null : null,
    });
  };

  const crumbs = (page, trial) => {
    const where = [
      trial.task,
      telling(page, trial.task, trial.params),
      `trial ${trial.trial}`,
      trial.repeat ? `repeat ${trial.repeat}` : null,
      ...trial.tiers,
    ].filter(Boolean).join(" · ");
    return h("div.crumbs", {}, h("a", { href: back(page), id: "back" }, "‹ Trials"), h("span", {}, where));
  };

  const button = (page, id, act, text) =>
    h("button", { type: "button", id, disabled: numbered(page) === null, onclick: () => act(page) }, text);

  const besideSelect = (page, beside) =>
    h(
      "select",
      { id: "beside", onchange: (event) => page.set({ beside: event.target.value || null }) },
      h("option", { value: "" }, "no other model"),
      beside ? h("option", { value: beside, selected: true }, beside) : null,
    );

  const controls = (page, select) =>
    h(
      "div.filters",
      {},
      button(page, "step-previous", previous, "‹ Previous"),
      button(page, "step-next", next, "Next ›"),
      button(page, "step-wrong", nextWrong, "Next wrong ›"),
      h("label.select", {}, "beside ", select),
      h("button", { type: "button", id: "copy", onclick: copied }, "Copy link"),
      h("span.note", { id: "told", role: "status" }),
    );

  /** The trial, and the other one or why it is not there; a prompt that both have stands above them. */
  const replies = (page, trial, other, beside) => {
    const there = other && !(other instanceof Error);
    const alike = there && JSON.stringify(other.messages) === JSON.stringify(trial.messages);
    const how = { prompt: !alike, open: page.get("reasoning") === "open" };
    const lacking = () => h("article.reply", {}, h("h2", {}, beside), h("p.problem", {}, other.message));
    return [
      ...(alike ? [h("div.shared", {}, promptOf(trial))] : []), // a null would be shown as a word
      h(
        "div",
        { class: other ? "beside" : "alone" },
        column(trial, how),
        there ? column(other, how) : other ? lacking() : null,
      ),
    ];
  };

  /** Say who else answered this question when that is there: it costs a look at each model. */
  const askOthers = (page, trial, here, select, beside) => {
    const show = (answer) => {
      const rows = answer.rows.filter((row) => row.label !== trial.label && row.status !== "missing");
      const right = rows.filter((row) => row.status === "correct").length;
      const others = rows.length
        ? `${right} of ${rows.length} other${rows.length === 1 ? " is" : "s are"} right`
        : `none ${explorer.bundle ? "in this bundle" : "has answered"}`;
      const option = (row) => h("option", { value: row.label }, `${row.label}: ${row.status}`);
      select.replaceChildren(h("option", { value: "" }, `no other model (${others})`), ...rows.map(option));
      select.value = beside;
    };
    page.ask("same", here).then(show, () => {});
  };

  const KEYS = [["j"], " ", ["k"], " next and previous, ", ["w"], " next wrong, ", ["r"], " reasoning, ", ["u"]];

  const flipReasoning = (page) => {
    const reasoning = page.get("reasoning") === "open" ? null : "open";
    page.set({ reasoning }, { replace: true });
  };

  const ACTS = {
    j: next,
    ArrowRight: next,
    k: previous,
    ArrowLeft: previous,
    w: nextWrong,
    r: flipReasoning,
    u: () => document.getElementById("back")?.click(),
  };

  explorer.view({
    name: "trial",
    title: "Trial",
    level: "trials",
    hidden: true,
    async render(root, page) {
      const names = ["evaluation", "asked", "point", "trial", "repeat", "cube"];
      const here = Object.fromEntries(names.map((name) => [name, page.all(name)]));
      const trial = await page.ask("trial", here);
      const beside = page.get("beside") === trial.label ? "" : page.get("beside");
      const there = { ...here, evaluation: beside, cube: null };
      const other = beside ? await page.ask("trial", there).catch((error) => error) : null;
      const select = besideSelect(page, beside);
      root.append(
        crumbs(page, trial),
        controls(page, select),
        ...replies(page, trial, other, beside),
        parameters(trial),
        keys(...KEYS, " back to the table"),
      );
      askOthers(page, trial, here, select, beside);
    },
    key(event, page) {
      const act = ACTS[event.key];
      act?.(page);
      return Boolean(act);
    },
  });
}
