"use strict";
// The first level: the leaderboard, what scores cost, and scores against a facet of the models.
{
  const { h, format } = explorer;
  const IDLE = 4000;
  const SVG = "http://www.w3.org/2000/svg";

  /** The leaderboard of the part that is meant: at once with few draws where there are many rows, then with all. */
  const boardOf = async (page) => {
    const query = { ...page.part(), mode: page.get("mode"), score: page.get("score") };
    const quick = { ...query, quick: "1" };
    if (explorer.bundle || explorer.has("ranking", query)) return page.ask("ranking", query);
    const board = await page.ask("ranking", quick);
    if (board.final) return board;
    clearTimeout(pending);
    const here = location.hash;
    // Not at once: with many models all draws keep the server busy for a second or more, in which the next filter would wait.
    pending = setTimeout(async () => {
      if (location.hash !== here) return;
      await page.ask("ranking", query).catch(() => null);
      if (location.hash === here && explorer.has("ranking", query)) explorer.draw();
    }, IDLE);
    return board;
  };
  let pending;

  const lead = (board, row) => (board.lead === "score" ? row.score : row.rate);
  const leadName = (board) => (board.lead === "score" ? "score" : board.mode);
  const shown = (board, value) => (board.lead === "score" ? format.number(value, 0) : format.percent(value));
  const isShare = (board) => board.lead !== "score";

  const element = (name, attributes, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  /** An interval as a line with its value as a dot, on the same scale in each row. */
  const bar = (estimate, [low, high], text) => {
    if (!format.isNumber(estimate.lower) || !format.isNumber(estimate.upper)) return format.absent;
    const at = (value) => 3 + 114 * (high > low ? (value - low) / (high - low) : 0.5);
    return h(
      "span.bar",
      { title: text },
      element(
        "svg",
        { viewBox: "0 0 120 12", width: 120, height: 12, role: "img", "aria-label": text },
        element("line", { x1: at(estimate.lower), x2: at(estimate.upper), y1: 6, y2: 6, class: "range" }),
        element("circle", { cx: at(estimate.value), cy: 6, r: 3, class: "value" }),
      ),
    );
  };

  const extent = (values) => {
    const there = values.filter(format.isNumber);
    return there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
  };

  /** A number on the ground of how good it is among the others. */
  const shaded = (value, [low, high], text, { down = false } = {}) => {
    if (!format.isNumber(value) || high <= low) return text;
    const part = (value - low) / (high - low);
    const good = down ? 1 - part : part;
    return h("span.shade", {
      style: { background: `color-mix(in srgb, var(--good) ${Math.round(34 * good)}%, transparent)` },
    }, text);
  };

  /** What a value says by the bands that it lies in; empty outside of all. */
  const said = (value, bands) => {
    const found = bands.find(([low, high]) => low <= value && value <= high);
    return found ? `${found[0]}–${found[1]}: ${found[2]}` : "";
  };

  const listed = (bands) => bands.map(([low, high, words]) => `${low}–${high}: ${words}`);

  /** A text that says more where one points at it. */
  const told = (text, more) => (more ? h("span", { title: more }, text) : text);

  const LAYERS = ["fact", "behavior", "judge"];

  /** A verdict as a pill, which says where one points at it what it means or rests on. */
  const pill = (verdict, text) => h(`span.pill.is-${verdict.toLowerCase()}`, { title: text }, verdict);

  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

  /** What outputs were scored in layers: the composite with those behind it, the gate, and the verdict against the variant in use. */
  const compositeColumns = (board) => {
    const of = (row, name) => row.composite?.layers[name] ?? null;
    const pairs = board.verdict?.pairs || {};
    const fixed = (value) => (format.isNumber(value) ? value.toFixed(2) : format.absent);
    const difference = (pair) =>
      `${signed(pair.difference.value)} (${signed(pair.difference.lower)} to ${
        signed(pair.difference.upper)
      }) at ${board.verdict.level}, against ${
        board.rows.find((row) => row.eval_id === board.verdict.control)?.label
      }; ${pair.reasons.join("; ")}`;
    return [
      {
        key: "composite",
        title: "composite",
        hint:
          "Mean of the layers in brackets, from 1 to 5, with its interval. It compares answers to the same questions and is no absolute level.",
        value: (row) => row.composite?.score.value ?? null,
        parts: (row) => ({
          value: row.composite?.score.value ?? null,
          lower: row.composite?.score.lower ?? null,
          upper: row.composite?.score.upper ?? null,
          layers: row.composite?.shown ?? null,
        }),
        show: (row) => (row.composite
          ? h(
            "span",
            {},
            row.composite.shown,
            h("small.ends", {}, `${fixed(row.composite.score.lower)} – ${fixed(row.composite.score.upper)}`),
          )
          : format.absent),
      },
      ...(Object.keys(pairs).length
        ? [{
          key: "verdict",
          title: "verdict",
          left: true,
          hint: `Against ${
            board.rows.find((row) => row.eval_id === board.verdict.control)?.label
          }, the variant in use.`,
          value: (row) => pairs[row.eval_id]?.verdict ?? (row.eval_id === board.verdict.control ? "in use" : null),
          show: (row) => (pairs[row.eval_id]
            ? pill(pairs[row.eval_id].verdict, difference(pairs[row.eval_id]))
            : row.eval_id === board.verdict.control
            ? "in use"
            : format.absent),
        }]
        : []),
      ...LAYERS.map((name) => ({
        key: name,
        title: name,
        hint: `Mean of the layer ${name}, from 1 to 5.`,
        extra: !board.rows.some((row) => of(row, name) !== null),
        value: (row) => of(row, name),
        show: (row) => fixed(of(row, name)),
      })),
      {
        key: "gate",
        title: "gate",
        left: true,
        hint: "Passed with a mean of at least 3.5 in each layer.",
        value: (row) => (row.composite ? (row.composite.gate_passed ? "passed" : "failed") : null),
      },
    ];
  };

  /** The verdict on the cube's variants, with the four badges; null where outputs have no layers. */
  const standing = (board) => {
    if (!board.verdict) return board.no_verdict ? h("p.note", {}, board.no_verdict) : null;
    const { verdict, words, meaning, badges, reasons, next_step: next, notes } = board.verdict;
    return h(
      "section.panel.verdict",
      { id: "verdict", "aria-label": "Verdict" },
      h("p", {}, pill(verdict, meaning), ` ${words}: ${meaning}.`),
      h(
        "ul.badges",
        {},
        badges.map(([name, value, told]) => h(`li.is-${value}`, { title: told }, `${name}: `, h("b", {}, value))),
      ),
      h(
        "details",
        {},
        h("summary", {}, "Why, and what next"),
        h("ul", {}, [...reasons, next, ...notes].map((text) => h("li", {}, text))),
      ),
    );
  };

  const columnsOf = (board, page) => {
    const { meaning } = board;
    const scoreHint = ["ReasonScore, 10 to 1000.", ...listed(meaning.score), meaning.always_right, meaning.why].filter(
      Boolean,
    ).join("\n");
    const tokenHint = [
      "Score for each completion token: greener is more, of whatever quality.",
      ...listed(meaning.token),
      meaning.short,
    ].join("\n");
    const byScore = board.lead === "score";
    const rows = board.rows;
    const tokenWords = (
      { score, score_per_token: ratio },
    ) => (format.isNumber(ratio.value)
      ? said(Math.min(ratio.value, score.value / 1000), meaning.token).split(": ")[1]
      : "");
    const places = (row) => {
      const { lower, upper } = row.rank_interval;
      return row.rank === null ? format.absent : lower < upper ? `${lower}–${upper}` : String(row.rank);
    };
    const star = (row) => (row.incomplete || row.partial || row.others ? "*" : "");
    const share = (key, title, hint, extra = false) => ({
      key,
      title,
      hint,
      extra,
      descending: true,
      value: (row) => row[key],
      show: (row) => format.percent(row[key]),
    });
    const count = (key, title, hint, extra = true) => ({ key, title, hint, extra, value: (row) => row[key] });
    const scale = extent(rows.flatMap((row) => [lead(board, row).lower, lead(board, row).upper]));
    const perToken = extent(rows.map((row) => row.score_per_token.value));
    const perThousand = extent(rows.map((row) => row.correct_per_1000_tokens.value));
    const level = `${Math.round(100 * board.confidence)} %`;
    const several = (name) => new Set(rows.map((row) => row[name])).size > 1;
    const any = (name) => rows.some((row) => format.isNumber(row[name]) && row[name] > 0);
    const parts = (name) => (row) => ({ value: row[name].value, lower: row[name].lower, upper: row[name].upper });
    const tierScale = board.tiers.map((_, place) =>
      extent(rows.map((row) => (byScore ? row.tiers[place]?.score.value : row.tiers[place]?.rate.value)))
    );
    return [
      {
        key: "rank",
        title: "#",
        hint:
          "Place; several where the order is open: had other questions been drawn, it would be one of these. None for evaluations that were asked other questions, or not all.",
        value: (row) => row.rank,
        show: places,
        descending: false,
      },
      {
        key: "label",
        title: "model",
        left: true,
        value: (row) => row.label,
        show: (row) =>
          h("a.name", {
            href: page.link("trials", { model: row.label }),
            title: `${row.model_name} · ${row.template} · ${row.sampler}`,
          }, row.label + star(row)),
      },
      {
        key: "score",
        title: "score",
        hint: scoreHint,
        extra: !byScore,
        value: (row) => row.score.value,
        parts: parts("score"),
        show: (row) => told(format.number(row.score.value, 0), said(row.score.value, meaning.score)),
      },
      {
        key: "score_per_token",
        title: "score/token",
        hint: tokenHint,
        extra: !byScore,
        value: (row) => row.score_per_token.value,
        parts: parts("score_per_token"),
        show: (row) =>
          told(shaded(row.score_per_token.value, perToken, format.number(row.score_per_token.value)), tokenWords(row)),
      },
      {
        key: "correct_per_1000_tokens",
        title: "right/1k tok",
        choice: "right by 1000 tokens",
        hint: "Correct answers that 1000 completion tokens bring: greener is better.",
        extra: byScore,
        value: (row) => row.correct_per_1000_tokens.value,
        parts: parts("correct_per_1000_tokens"),
        show: (row) =>
          shaded(row.correct_per_1000_tokens.value, perThousand, format.number(row.correct_per_1000_tokens.value)),
      },
      {
        key: "rate",
        title: board.mode,
        hint: board.mode.startsWith("C") ? "Share of right answers, guesses taken out." : "Share of right answers.",
        value: (row) => row.rate.value,
        parts: parts("rate"),
        show: (row) => format.percent(row.rate.value),
      },
      ...(rows.some((row) => row.composite) ? compositeColumns(board) : []),
      {
        key: "interval",
        left: true,
        title: level,
        choice: `interval (${level})`,
        hint: `${level} interval of what the board is ordered by.`,
        value: (row) => lead(board, row).lower,
        parts: (row) => ({ lower: lead(board, row).lower, upper: lead(board, row).upper }),
        show: (row) =>
          bar(
            lead(board, row),
            scale,
            `${leadName(board)} ${shown(board, lead(board, row).value)}, interval ${
              format.interval(lead(board, row), isShare(board))
            }`,
          ),
      },
      {
        key: "groups",
        title: "groups",
        hint: "Rows with a letter in common may stand at the same place.",
        left: true,
        value: (row) => row.groups,
        show: (row) => h("span.letters", {}, row.groups),
      },
      {
        key: "accuracy",
        title: "accuracy",
        hint: "Plain share of right answers.",
        extra: true,
        value: (row) => row.accuracy.value,
        parts: parts("accuracy"),
        show: (row) => format.percent(row.accuracy.value),
      },
      ...(board.tiers.length > 1
        ? board.tiers.map((tier, place) => ({
          key: `tier-${tier}`,
          title: tier,
          hint: [
            `${leadName(board)} of tier ${tier}.`,
            ...(byScore ? [...listed(meaning.score), "From easy to hard:", ...meaning.profiles] : []),
          ].join("\n"),
          value: (row) => (byScore ? row.tiers[place].score.value : row.tiers[place].rate.value),
          parts: (row) => {
            const one = byScore ? row.tiers[place].score : row.tiers[place].rate;
            return { value: one.value, lower: one.lower, upper: one.upper };
          },
          show: (row) => {
            const one = byScore ? row.tiers[place].score : row.tiers[place].rate;
            return told(
              shaded(one.value, tierScale[place], shown(board, one.value) + (row.tiers[place].incomplete ? "*" : "")),
              byScore ? said(one.value, meaning.score) : "",
            );
          },
        }))
        : []),
      {
        key: "tokens_per_trial",
        title: "tokens",
        hint: "Completion tokens for each trial.",
        value: (row) => row.tokens_per_trial,
        show: (row) => format.number(row.tokens_per_trial, 0),
        descending: false,
      },
      {
        key: "cost_per_1000",
        title: "$/1000",
        choice: "cost of 1000 trials",
        hint: "USD for 1000 trials.",
        extra: !any("cost_per_1000"),
        value: (row) => row.cost_per_1000,
        show: (row) => format.money(row.cost_per_1000),
        descending: false,
      },
      {
        key: "cost",
        title: "cost",
        hint: "USD of all finished trials.",
        extra: true,
        value: (row) => row.cost,
        show: (row) => format.money(row.cost),
      },
      {
        key: "latency",
        title: "latency",
        hint: "Mean seconds of a reply.",
        extra: !any("latency"),
        value: (row) => row.latency,
        show: (row) => format.seconds(row.latency),
        descending: false,
      },
      {
        ...share("truncated", "truncated", "Cut off by the token limit."),
        show: (
          row,
        ) => (row.truncated > 0.01 ? h("span.warn", {}, format.percent(row.truncated)) : format.percent(row.truncated)),
      },
      share("invalid", "invalid", "Replies without an answer in the asked form.", !any("invalid")),
      share("refused", "refused", "Refused or filtered.", !any("refused")),
      {
        key: "trials",
        title: "trials",
        hint: "Finished trials, of those that are planned.",
        extra: !rows.some((row) => row.partial),
        value: (row) => row.trials,
        show: (
          row,
        ) => (row.trials < row.planned
          ? `${format.number(row.trials)} of ${format.number(row.planned)}`
          : format.number(row.trials)),
      },
      {
        key: "score_v1",
        title: "v1",
        hint: "Score of upper bounds: a model that is always right has 1000, whatever the number of trials.",
        extra: true,
        value: (row) => row.score_v1,
        show: (row) => format.number(row.score_v1, 0),
      },
      share("unique", "unique", "Trials whose question is new in its cell.", true),
      { key: "template", title: "template", left: true, extra: !several("template"), value: (row) => row.template },
      { key: "sampler", title: "sampler", left: true, extra: !several("sampler"), value: (row) => row.sampler },
      count("max_tokens", "max tokens", "The limit of completion tokens."),
      count("transport", "errors", "Trials without a reply after the last retry."),
      {
        key: "eval_id",
        title: "eval id",
        left: true,
        extra: true,
        value: (row) => row.eval_id,
        show: (row) => h("code", {}, row.eval_id.slice(0, 12)),
      },
      ...page.overview.facets.map((facet) => ({
        key: facet.name,
        title: format.plain(facet.name),
        left: !facet.numeric,
        extra: true,
        value: (row) => row.facets[facet.name.replace(/^facet_/, "")],
        show: (row) => {
          const value = row.facets[facet.name.replace(/^facet_/, "")];
          return value === undefined ? format.absent : String(value);
        },
      })),
    ];
  };

  /** The search box that narrows rows by their names and facets as it is typed into. */
  const find = (page) =>
    h("input", {
      id: "find",
      type: "search",
      placeholder: "Find a model …",
      "aria-label": "Find a model",
      value: page.get("find"),
      oninput: (event) => page.set({ find: event.target.value }, { replace: true }),
    });

  const found = (page, rows) => {
    const words = page.get("find").toLowerCase().split(/\s+/).filter(Boolean);
    const models = page.all("model");
    return rows.filter((row) =>
      (!models.length || models.includes(row.label)) &&
      words.every((word) =>
        `${row.label} ${row.model_name} ${Object.values(row.facets).join(" ")}`.toLowerCase().includes(word)
      )
    );
  };

  const modes = (page) => [
    explorer.select(page, "score", [["", "score as fits"], ["v1", "score v1"], ["v2", "score v2"]]),
    explorer.select(page, "mode", [
      ["", "C_P: truncated are wrong"],
      ["C_I", "C_I: truncated left out"],
      ["C_O", "C_O: truncated are right"],
      ["E_P", "E_P: with guesses"],
      ["E_I", "E_I"],
      ["E_O", "E_O"],
    ]),
  ];

  const notes = (board) => (board.notes.length || !board.final
    ? h(
      "ul.notes",
      { id: "notes" },
      board.final ? null : h("li", {}, "Intervals are being worked out with more draws."),
      board.notes.map((text) => h("li", {}, text)),
    )
    : null);

  /** Mark the rows that cannot be told apart from the one under the pointer. */
  const tied = (table) => {
    const letters = (row) => (row.querySelector(".letters")?.textContent || "").split(" ").filter(Boolean);
    const mark = (target) => {
      const mine = target ? letters(target) : [];
      for (const row of table.querySelectorAll("tbody tr")) {
        row.classList.toggle(
          "tied",
          row !== target && letters(row).some((one) => mine.includes(one)),
        );
      }
    };
    table.addEventListener("mouseover", (event) => mark(event.target.closest("tbody tr")));
    table.addEventListener("focusin", (event) => mark(event.target.closest("tbody tr")));
    table.addEventListener("mouseleave", () => mark(null));
    return table;
  };

  const controls = (page, ...more) =>
    explorer.filters(page, { models: true }, find(page), ...(explorer.bundle ? [] : modes(page)), ...more);

  explorer.view({
    name: "ranking",
    title: "Leaderboard",
    level: "ranking",
    controls,
    async render(root, page) {
      const board = await boardOf(page);
      root.append(
        controls(page),
        standing(board) || "",
        tied(
          explorer.table(page, {
            name: "ranking",
            caption: "Leaderboard",
            columns: columnsOf(board, page),
            rows: found(page, board.rows),
            sort: "rank",
            mark: (row) => (row.rank === null ? "faint" : ""),
          }),
        ),
        notes(board) || "",
      );
    },
  });

  /** What a chart says below itself of evaluations without a rank; null if it shows none. */
  const unrankedNote = (
    rows,
  ) => (rows.some((row) => row.rank === null)
    ? "Grey with a *: without a rank, as it was asked other questions, or not all of them yet. Its value cannot be compared with the others."
    : null);

  const SPENDS = {
    cost_per_1000: ["USD for 1000 trials", format.money],
    tokens_per_trial: ["completion tokens for each trial", (value) => format.number(value, 0)],
    latency: ["seconds of a reply", format.seconds],
  };

  /** Evaluations up to which a chart names all of them. */
  const NAMED = 12;
  const SIDES = ["top", "bottom"];

  const errors = (estimates, share) => ({
    type: "data",
    symmetric: false,
    thickness: 1.2,
    width: 0,
    array: estimates.map((one) => (one.upper - one.value) * (share ? 100 : 1)),
    arrayminus: estimates.map((one) => (one.value - one.lower) * (share ? 100 : 1)),
  });

  explorer.view({
    name: "cost",
    title: "Score and cost",
    level: "ranking",
    hint:
      "Who is up and to the left does more with less. The line joins those that nobody beats in both (Pareto front).",
    controls,
    async render(root, page) {
      const board = await boardOf(page);
      const there = Object.keys(SPENDS).filter((name) => board.rows.some((row) => format.isNumber(row[name])));
      const spend = there.includes(page.get("spend")) ? page.get("spend") : there[0];
      const pick = there.length > 1
        ? explorer.choice(
          page,
          "spend",
          there.map((name) => [name, { cost_per_1000: "cost", tokens_per_trial: "tokens", latency: "latency" }[name]]),
          "What is spent",
        )
        : null;
      root.append(
        controls(page, pick, explorer.choice(page, "x", [["log", "logarithmic"], ["linear", "linear"]], "Scale")),
      );
      const rows = found(page, board.rows).filter((row) =>
        format.isNumber(row[spend]) && format.isNumber(lead(board, row).value)
      );
      if (!rows.length) {
        root.append(h("p.empty", {}, "Nothing here has both a score and what it cost."));
        return;
      }
      const [title, told] = SPENDS[spend];
      const factor = isShare(board) ? 100 : 1;
      const values = rows.map((row) => lead(board, row));
      const front = rows.filter((row) => row.front.includes(spend)).sort((a, b) => a[spend] - b[spend]);
      const few = rows.length <= NAMED;
      const starred = (row) => row.label + (row.rank === null ? "*" : "");
      const short = explorer.shortened(rows.map(starred), explorer.narrow() ? 18 : 60);
      const named = rows.map((row) => (few || row.front.includes(spend) ? ` ${short.get(starred(row))} ` : ""));
      const linear = page.get("x") === "linear";
      const [low, high] = extent(rows.map((row) => row[spend]).filter((value) => value > 0));
      const unknown = found(page, board.rows).filter((row) =>
        !format.isNumber(row[spend]) && format.isNumber(lead(board, row).value)
      ).map(starred);
      const listed = (names) => `${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`;
      const free = linear ? [] : rows.filter((row) => row[spend] === 0).map(starred);
      // Names stand where there is room for them, away from the nearer edge; neighbours along the axis have theirs above and below.
      const along = new Map(
        [...rows].sort((a, b) => a[spend] - b[spend]).map((row, place) => {
          const at = linear ? row[spend] / high : Math.log(row[spend] / low) / Math.log(high / low);
          return [row, `${SIDES[place % SIDES.length]} ${at > 0.5 ? "left" : "right"}`];
        }),
      );
      const grey = explorer.theme().faint;
      root.append(
        h(
          "div.panel",
          {},
          explorer.chart({
            name: "score-and-cost",
            height: 520,
            label: `${leadName(board)} against ${title} of ${rows.length} evaluations`,
            traces: [
              {
                type: "scatter",
                mode: "lines",
                x: front.map((row) => row[spend]),
                y: front.map((row) => factor * lead(board, row).value),
                line: { shape: "hv", dash: "dot", color: explorer.theme().faint, width: 1.5 },
                hoverinfo: "skip",
                showlegend: false,
              },
              {
                type: "scatter",
                mode: "markers+text",
                x: rows.map((row) => row[spend]),
                y: values.map((one) => factor * one.value),
                text: named,
                textposition: rows.map((row) => along.get(row)),
                textfont: { size: 11 },
                cliponaxis: false,
                showlegend: false,
                marker: {
                  size: rows.map((row) => (row.front.includes(spend) ? 11 : 8)),
                  symbol: rows.map((row) => (row.rank === null ? "circle-open" : "circle")),
                  color: rows.map((row) => (row.rank === null ? grey : explorer.colour(page.overview, row.label))),
                  opacity: rows.map((row) => (row.front.includes(spend) ? 1 : 0.65)),
                },
                error_y: { ...errors(values, isShare(board)), color: explorer.theme().faint },
                customdata: rows.map((
                  row,
                  place,
                ) => [
                  starred(row),
                  shown(board, values[place].value),
                  format.interval(values[place], isShare(board)),
                  told(row[spend]),
                ]),
                hovertemplate:
                  "<b>%{customdata[0]}</b><br>%{customdata[1]} (%{customdata[2]})<br>%{customdata[3]}<extra></extra>",
              },
            ],
            layout: {
              hovermode: "closest",
              margin: { l: 50, r: 24, t: 16, b: 44 },
              xaxis: {
                title: { text: title },
                type: linear ? "linear" : "log",
                ...(linear
                  ? { rangemode: "tozero" }
                  : { dtick: high < 10 * low && !explorer.narrow() ? "D1" : "D2", tickformat: ".3~g" }),
              },
              yaxis: { title: { text: isShare(board) ? `${board.mode}, %` : "ReasonScore" } },
            },
            click: (point) => {
              if (point.customdata) location.hash = page.link("trials", { model: rows[point.pointNumber].label });
            },
            caption: [
              unrankedNote(rows),
              free.length ? `Not on a logarithmic scale, being 0 on it: ${listed(free)}.` : null,
              unknown.length
                ? `Not shown, as ${spend === "cost_per_1000" ? "no price of it is declared" : "it is not known"}: ${
                  listed(unknown)
                }.`
                : null,
              few ? null : "Names are those on the front; others are under the pointer.",
            ].filter(Boolean).join(" "),
          }),
        ),
        notes(board) || "",
      );
    },
  });

  // Scores against a facet

  const numeric = (overview) =>
    overview.facets.filter((facet) => (facet.numeric || facet.dated) && facet.levels.length > 1);
  const VALUES = {
    lead: "what leads the board",
    accuracy: "accuracy",
    tokens_per_trial: "tokens",
    cost_per_1000: "cost",
    latency: "latency",
    truncated: "truncated",
  };

  const LACKING = "–";

  const series = (rows, name) => {
    const lines = new Map();
    for (const row of rows) {
      const key = name === "none" ? "all" : String(row.facets[name] ?? row[name] ?? LACKING);
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(row);
    }
    return lines;
  };

  const band = (colour) => {
    const number = parseInt(colour.slice(1), 16);
    return `rgba(${number >> 16}, ${(number >> 8) & 255}, ${number & 255}, 0.16)`;
  };

  /** Points that no line joins, with their intervals. */
  const scattered = (name, points, marker, share, text) => {
    const factor = share ? 100 : 1;
    const bounded = points.every((one) => format.isNumber(one.estimate.lower) && format.isNumber(one.estimate.upper));
    return [{
      type: "scatter",
      mode: "markers",
      name,
      x: points.map((one) => one.x),
      y: points.map((one) => factor * one.estimate.value),
      marker: { size: 7, ...marker },
      legendgroup: name,
      ...(bounded ? { error_y: { ...errors(points.map((one) => one.estimate), share), color: marker.color } } : {}),
      customdata: points.map(
        (one) => [name, one.label, text(one.estimate.value), bounded ? format.interval(one.estimate, share) : ""],
      ),
      hovertemplate:
        "<b>%{customdata[1]}</b> · %{x}<br>%{customdata[2]} (%{customdata[3]})<extra>%{customdata[0]}</extra>",
    }];
  };

  /** Whether a line may join points: it says that they are one thing at different places, so that two at one place are none. */
  const joinable = (points) => new Set(points.map((one) => one.x)).size === points.length;

  /** A line with the band of its intervals. Each point is {x, estimate, label}. */
  const curve = (name, points, colour, share, text) => {
    const factor = share ? 100 : 1;
    const x = points.map((one) => one.x);
    const hover = points.map(
      (one) => [
        name,
        one.label,
        text(one.estimate.value),
        format.isNumber(one.estimate.lower) ? format.interval(one.estimate, share) : "",
      ],
    );
    const line = {
      type: "scatter",
      mode: "lines+markers",
      name,
      x,
      y: points.map((one) => factor * one.estimate.value),
      line: { color: colour, width: 2 },
      marker: { size: 7 },
      customdata: hover,
      legendgroup: name,
      hovertemplate:
        "<b>%{customdata[1]}</b> · %{x}<br>%{customdata[2]} (%{customdata[3]})<extra>%{customdata[0]}</extra>",
    };
    if (!points.every((one) => format.isNumber(one.estimate.lower) && format.isNumber(one.estimate.upper))) {
      return [line];
    }
    const edge = {
      type: "scatter",
      mode: "lines",
      x,
      line: { width: 0 },
      hoverinfo: "skip",
      showlegend: false,
      legendgroup: name,
    };
    return [{ ...edge, y: points.map((one) => factor * one.estimate.lower) }, {
      ...edge,
      y: points.map((one) => factor * one.estimate.upper),
      fill: "tonexty",
      fillcolor: band(colour),
    }, line];
  };

  explorer.view({
    name: "curves",
    title: "Against a facet",
    level: "ranking",
    hint:
      "How scores go with a number or date that is said of the models: training step, size, release. Bands are intervals.",
    ready: (overview) => numeric(overview).length > 0,
    controls,
    async render(root, page) {
      const { overview } = page;
      const facets = numeric(overview);
      const against = facets.find((facet) => facet.name === page.get("against")) || facets.find((facet) =>
        /step|epoch|iter/i.test(facet.name)
      ) || facets[0];
      const field = against.name.replace(/^facet_/, "");
      const texts = overview.facets.filter((facet) => !facet.numeric && !facet.dated && facet.levels.length > 1).map(
        (facet) => facet.name.replace(/^facet_/, ""),
      );
      const line = ["task", "none", "template", "sampler", ...texts].includes(page.get("lines"))
        ? page.get("lines")
        : texts[0] || "none";
      const what = VALUES[page.get("value")] ? page.get("value") : "lead";
      const board = await boardOf(page);
      const rows = found(page, board.rows).filter((row) => row.facets[field] !== undefined);
      root.append(
        controls(
          page,
          explorer.select(
            page,
            "against",
            facets.map((facet) => [facet.name, format.plain(facet.name)]),
            "against",
            against.name,
          ),
          explorer.select(page, "value", Object.entries(VALUES), "show"),
          explorer.select(
            page,
            "lines",
            ["task", "none", ...texts, "template", "sampler"].map(
              (name) => [name, name === "none" ? "all together" : name],
            ),
            "a line for each",
            line,
          ),
        ),
      );
      const share = what === "lead" ? isShare(board) : what === "accuracy" || what === "truncated";
      const told = {
        lead: (value) => shown(board, value),
        accuracy: format.percent,
        truncated: format.percent,
        cost_per_1000: format.money,
        latency: format.seconds,
        tokens_per_trial: (value) => format.number(value, 0),
      }[what];
      const estimate = (
        row,
      ) => (what === "lead" ? lead(board, row) : what === "accuracy" ? row.accuracy : { value: row[what] });
      const ordered = (points) =>
        points.filter((one) => format.isNumber(one.estimate.value)).sort((
          a,
          b,
        ) => (a.x < b.x ? -1 : a.x > b.x ? 1 : 0));
      const ranked = rows.filter((row) => row.rank !== null);
      const others = rows.filter((row) => row.rank === null);
      let lines;
      if (line === "task") {
        const rates = await explorer.groups(page, ["model", "task"]);
        const rate = (label, place) => {
          const { point, ...ends } = rates.at(rates.levels("model").indexOf(label), place);
          return { value: point, ...ends };
        };
        lines = rates.levels("task").map((
          task,
          place,
        ) => [
          task,
          ordered(ranked.map((row) => ({ x: row.facets[field], label: row.label, estimate: rate(row.label, place) }))),
        ]);
      } else {lines = [...series(ranked, line)].map((
          [name, mine],
        ) => [name, ordered(mine.map((row) => ({ x: row.facets[field], label: row.label, estimate: estimate(row) })))]
        );}
      const byTask = line === "task";
      const shares = byTask || share;
      const text = byTask ? format.percent : told;
      const apart = lines.filter(([name, points]) => name === LACKING || !joinable(points)).map(([name]) => name);
      const traces = lines.flatMap(([name, points], place) => {
        const colour = explorer.colours[place % explorer.colours.length];
        return apart.includes(name)
          ? scattered(name, points, { color: colour }, shares, text)
          : curve(name, points, colour, shares, text);
      });
      if (others.length && !byTask) {
        traces.push(
          ...scattered(
            "without a rank*",
            ordered(others.map((row) => ({ x: row.facets[field], label: `${row.label}*`, estimate: estimate(row) }))),
            { color: explorer.theme().faint, symbol: "circle-open" },
            shares,
            text,
          ),
        );
      }
      const said = [
        !others.length
          ? null
          : byTask
          ? `Left out: ${others.length} without a rank, as they were asked other questions or not all of them.`
          : unrankedNote(rows),
        apart.length
          ? `No line joins evaluations that do not say their ${line}, or of which several have the same ${field}: ${
            apart.join(", ")
          }.`
          : null,
      ].filter(Boolean).join(" ");
      const levels = against.levels;
      const spread = against.numeric && levels[0] > 0 && levels[levels.length - 1] / levels[0] > 20;
      root.append(
        rows.length
          ? h(
            "div.panel",
            {},
            explorer.chart({
              name: `against-${field}`,
              height: 520,
              traces,
              label: `${what} against ${field}, a line for each ${line}`,
              caption: said || null,
              layout: {
                hovermode: "closest",
                showlegend: traces.filter((one) => one.showlegend !== false).length > 1,
                xaxis: {
                  title: { text: format.plain(against.name) },
                  ...(against.dated
                    ? { type: "date" }
                    : spread
                    ? { type: "log", dtick: "D2", tickformat: ".3~g" }
                    : { type: "linear" }),
                },
                yaxis: {
                  title: {
                    text: byTask
                      ? `${board.mode}, %`
                      : what === "lead"
                      ? (share ? `${board.mode}, %` : "ReasonScore")
                      : VALUES[what] + (share ? ", %" : ""),
                  },
                  rangemode: shares ? "normal" : "tozero",
                },
              },
            }),
          )
          : h("p.empty", {}, `No model here says its ${field}.`),
        notes(board) || "",
      );
    },
  });
}
