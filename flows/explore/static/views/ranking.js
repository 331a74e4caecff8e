"use strict";
// The leaderboard as a table.
{
  const { h, format } = explorer;
  const { lead, leadName, shown, byScore, extent } = explorer.board;
  const SVG = "http://www.w3.org/2000/svg";
  const LAYERS = ["fact", "behavior", "judge"];
  const RANK_HINT = "Rank; a range such as 1–2 is a rank interval: too close to call. " +
    "Evaluations with other questions, or with missing ones, have no rank.";
  const COMPOSITE_HINT = "Mean of the layers in brackets, from 1 to 5, with its interval. " +
    "Use it to compare answers to the same questions, not as an absolute level.";

  // What a cell shows

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
    const drawn = element(
      "svg",
      { viewBox: "0 0 120 12", width: 120, height: 12, role: "img", "aria-label": text },
      element("line", { x1: at(estimate.lower), x2: at(estimate.upper), y1: 6, y2: 6, class: "range" }),
      element("circle", { cx: at(estimate.value), cy: 6, r: 3, class: "value" }),
    );
    return h("span.bar", { title: text }, drawn);
  };

  /** A number on the ground of how good it is among the others. */
  const shaded = (value, [low, high], text) => {
    if (!format.isNumber(value) || high <= low) return text;
    const strength = Math.round(34 * (value - low) / (high - low));
    return h(
      "span.shade",
      { style: { background: `color-mix(in srgb, var(--good) ${strength}%, transparent)` } },
      text,
    );
  };

  /** What a value says by the bands that it lies in; empty outside of all. */
  const said = (value, bands) => {
    const found = bands.find(([low, high]) => low <= value && value <= high);
    return found ? `${found[0]}–${found[1]}: ${found[2]}` : "";
  };

  const listed = (bands) => bands.map(([low, high, words]) => `${low}–${high}: ${words}`);

  /** A text that says more where one points at it. */
  const told = (text, more) => (more ? h("span", { title: more }, text) : text);

  /** A verdict as a pill, which says where one points at it what it means or rests on. */
  const pill = (verdict, text) => h(`span.pill.is-${verdict.toLowerCase()}`, { title: text }, verdict);

  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  const fixed = (value) => (format.isNumber(value) ? value.toFixed(2) : format.absent);

  // Columns, by kind

  const bounds = ({ value, lower, upper }) => ({ value, lower, upper });

  /** A column of a row's own field. */
  const column = (key, title, hint, show, more = {}) => ({ key, title, hint, value: (row) => row[key], show, ...more });

  /** A column of an estimate. */
  const estimate = (key, title, hint, show, more = {}) => ({
    ...column(key, title, hint, show, more),
    value: (row) => row[key].value,
    parts: (row) => bounds(row[key]),
  });

  const name = (key, title, hint, extra, show) => ({ ...column(key, title, hint, show), left: true, extra });

  const placeColumns = (page) => {
    const places = (row) => {
      const { lower, upper } = row.rank_interval;
      const text = row.rank === null ? format.absent : lower < upper ? `${lower}–${upper}` : String(row.rank);
      const said = row.rank === null ? "no rank" : `rank ${text.replace("–", " to ")}`;
      return h("span", { role: "img", "aria-label": said }, text);
    };
    const star = (row) => (row.incomplete || row.partial || row.others ? "*" : "");
    const link = (row) =>
      h("a.name", {
        href: page.link("trials", { model: row.label }),
        title: `${row.model_name} · ${row.template} · ${row.sampler}`,
      }, row.label + star(row));
    return [
      column("rank", "#", RANK_HINT, places, { descending: false }),
      name("label", "model", undefined, false, link),
    ];
  };

  const scoreHint = ({ meaning }) =>
    ["ReasonScore, 10 to 1000.", ...listed(meaning.score), meaning.always_right, meaning.why].filter(Boolean).join(
      "\n",
    );

  const tokenHint = ({ meaning }) => {
    const first = "Score for each completion token: greener is more, of whatever quality.";
    return [first, ...listed(meaning.token), meaning.short].join("\n");
  };

  const tokenWords = ({ meaning }, { score, score_per_token: ratio }) => {
    if (!format.isNumber(ratio.value)) return "";
    return said(Math.min(ratio.value, score.value / 1000), meaning.token).split(": ")[1];
  };

  const scoreColumns = (board) => {
    const perToken = extent(board.rows.map((row) => row.score_per_token.value));
    const perThousand = extent(board.rows.map((row) => row.correct_per_1000_tokens.value));
    const score = (row) => told(format.number(row.score.value, 0), said(row.score.value, board.meaning.score));
    const ratio = ({ value }, scale) => shaded(value, scale, format.number(value));
    const byToken = (row) => told(ratio(row.score_per_token, perToken), tokenWords(board, row));
    const byThousand = (row) => ratio(row.correct_per_1000_tokens, perThousand);
    const rightHint = "Correct answers that 1000 completion tokens bring: greener is better.";
    const rateHint = board.mode.startsWith("C")
      ? "Share of right answers, guesses taken out."
      : "Share of right answers.";
    return [
      estimate("score", "score", scoreHint(board), score, { extra: !byScore(board) }),
      estimate("score_per_token", "score/token", tokenHint(board), byToken, { extra: !byScore(board) }),
      estimate("correct_per_1000_tokens", "right/1k tok", rightHint, byThousand, {
        choice: "right by 1000 tokens",
        extra: byScore(board) || !board.rows.some((row) => format.isNumber(row.correct_per_1000_tokens.value)),
      }),
      estimate("rate", board.rate_name, rateHint, (row) => format.percent(row.rate.value)),
    ];
  };

  const controlOf = (board) => board.rows.find((row) => row.eval_id === board.verdict.control)?.label;

  const compositeColumn = () => {
    const ends = ({ lower, upper }) => h("small.ends", {}, `${fixed(lower)} – ${fixed(upper)}`);
    const show = ({ composite }) => composite ? h("span", {}, composite.shown, ends(composite.score)) : format.absent;
    const part = (row, which) => row.composite?.score[which] ?? null;
    return {
      ...column("composite", "composite", COMPOSITE_HINT, show),
      value: (row) => part(row, "value"),
      parts: (row) => ({
        value: part(row, "value"),
        lower: part(row, "lower"),
        upper: part(row, "upper"),
        layers: row.composite?.shown ?? null,
      }),
    };
  };

  const verdictColumn = (board) => {
    const { pairs, control, level } = board.verdict;
    const reasons = ({ difference, reasons }) => {
      const [value, lower, upper] = ["value", "lower", "upper"].map((which) => signed(difference[which]));
      return `${value} (${lower} to ${upper}) at ${level}, against ${controlOf(board)}; ${reasons.join("; ")}`;
    };
    const inUse = (row) => row.eval_id === control;
    const show = (row) => {
      const pair = pairs[row.eval_id];
      return pair ? pill(pair.verdict, reasons(pair)) : inUse(row) ? "in use" : format.absent;
    };
    return {
      ...name("verdict", "verdict", `Against ${controlOf(board)}, the variant in use.`, false, show),
      value: (row) => pairs[row.eval_id]?.verdict ?? (inUse(row) ? "in use" : null),
    };
  };

  const layerColumn = (board, layer) => {
    const of = (row) => row.composite?.layers[layer] ?? null;
    return {
      ...column(layer, layer, `Mean of the layer ${layer}, from 1 to 5.`, (row) => fixed(of(row))),
      extra: !board.rows.some((row) => of(row) !== null),
      value: of,
    };
  };

  const gateColumn = () => ({
    ...name("gate", "threshold", "Reached with a mean of at least 3.5 in each layer."),
    value: (row) => (row.composite ? (row.composite.gate_passed ? "reached" : "missed") : null),
  });

  /** Columns of outputs that were scored in layers: the composite, the verdict, each layer, the threshold. */
  const layeredColumns = (board) => {
    if (!board.rows.some((row) => row.composite)) return [];
    const compared = Object.keys(board.verdict?.pairs || {}).length > 0;
    return [
      compositeColumn(),
      ...(compared ? [verdictColumn(board)] : []),
      ...LAYERS.map((layer) => layerColumn(board, layer)),
      gateColumn(),
    ];
  };

  const intervalColumn = (board) => {
    const level = `${Math.round(100 * board.confidence)}%`;
    const scale = extent(board.rows.flatMap((row) => [lead(board, row).lower, lead(board, row).upper]));
    const text = (one) =>
      `${leadName(board)} ${shown(board, one.value)}, interval ${format.interval(one, !byScore(board))}`;
    return {
      key: "interval",
      title: level,
      choice: `interval (${level})`,
      hint: `${level} interval of what the board is ordered by.`,
      left: true,
      value: (row) => lead(board, row).lower,
      parts: (row) => ({ lower: lead(board, row).lower, upper: lead(board, row).upper }),
      show: (row) => bar(lead(board, row), scale, text(lead(board, row))),
    };
  };

  const accuracyColumns = (board) => [
    name(
      "groups",
      "groups",
      "Rows with a letter in common may stand at the same place.",
      undefined,
      (row) => h("span.letters", {}, row.groups),
    ),
    ...(board.rate_name === "accuracy" ? [] : [
      estimate("accuracy", "accuracy", "Plain share of right answers.", (row) => format.percent(row.accuracy.value), {
        extra: true,
      }),
    ]),
  ];

  const tierColumn = (board, tier, place) => {
    const { meaning, rows } = board;
    const of = (row) => (byScore(board) ? row.tiers[place]?.score : row.tiers[place]?.rate);
    const scale = extent(rows.map((row) => of(row)?.value));
    const bands = byScore(board) ? [...listed(meaning.score), "From easy to hard:", ...meaning.profiles] : [];
    const show = (row) => {
      const { value } = of(row);
      const text = shown(board, value) + (row.tiers[place].incomplete ? "*" : "");
      return told(shaded(value, scale, text), byScore(board) ? said(value, meaning.score) : "");
    };
    return {
      key: `tier-${tier}`,
      title: tier,
      hint: [`${leadName(board)} of tier ${tier}.`, ...bands].join("\n"),
      value: (row) => of(row).value,
      parts: (row) => bounds(of(row)),
      show,
    };
  };

  const tierColumns = (board) =>
    board.tiers.length > 1 ? board.tiers.map((tier, place) => tierColumn(board, tier, place)) : [];

  // Columns that the leaderboard defines, as all that show it do

  const FORMS = { number: (value) => format.number(value, 0), percent: format.percent, money: format.money };

  const trials = (row) => {
    const text = format.number(row.trials);
    return row.trials < row.planned ? `${text} of ${format.number(row.planned)}` : text;
  };

  const truncated = (row) => {
    const text = format.percent(row.truncated);
    return row.truncated > 0.01 ? h("span.warn", {}, text) : text;
  };

  const DECORATED = { trials, truncated };

  const definedColumn = ({ rows }) => ({ path, head, long_head, hint, form, higher_first, extra }) => ({
    ...column(path, head, hint, DECORATED[path] || ((row) => FORMS[form](row[path]))),
    choice: (long_head || head).replace("\n", " "),
    descending: higher_first || form === "percent",
    extra: extra ?? !rows.some((row) => row[path] > 0),
  });

  const furtherColumns = ({ rows }) => {
    const alike = (key) => new Set(rows.map((row) => row[key])).size <= 1;
    return [
      column("latency", "latency", "Mean seconds of a reply.", (row) => format.seconds(row.latency), {
        descending: false,
        extra: !rows.some((row) => format.isNumber(row.latency) && row.latency > 0),
      }),
      name("template", "template", undefined, alike("template")),
      name("sampler", "sampler", undefined, alike("sampler")),
      column("max_tokens", "max tokens", "The limit of completion tokens.", undefined, { extra: true }),
      column("transport", "errors", "Trials without a reply after the last retry.", undefined, { extra: true }),
      name("eval_id", "eval id", undefined, true, (row) => h("code", {}, row.eval_id.slice(0, 12))),
    ];
  };

  const facetColumn = (facet) => {
    const of = (row) => row.facets[facet.name.replace(/^facet_/, "")];
    return {
      key: facet.name,
      title: format.plain(facet.name),
      left: !facet.numeric,
      extra: true,
      value: of,
      show: (row) => (of(row) === undefined ? format.absent : String(of(row))),
    };
  };

  const columnsOf = (board, page) => [
    ...placeColumns(page),
    ...scoreColumns(board),
    ...layeredColumns(board),
    intervalColumn(board),
    ...accuracyColumns(board),
    ...tierColumns(board),
    ...board.columns.map(definedColumn(board)),
    ...furtherColumns(board),
    ...page.overview.facets.map(facetColumn),
  ];

  // Around the table

  /** What the config's policy decides of each treatment, or why nothing. */
  const decided = (board) => [
    ...board.decisions.map((one) =>
      h(
        "section.panel.verdict",
        { "aria-label": "Decision" },
        h(
          "p",
          {},
          pill(one.decision, one.next_step),
          ` ${one.treatment} in the place of ${one.control}: ${one.reason}.`,
        ),
        h(
          "details",
          {},
          h("summary", {}, "Its lines, and what next"),
          h("ul", {}, [...one.rows.map(lineOf(one)), ...one.unsettled, one.next_step].map((text) => h("li", {}, text))),
        ),
      )
    ),
    ...(board.no_decision ? [h("p.note", {}, board.no_decision)] : []),
  ];

  /** A line of a policy in words: what it says, and by what numbers. */
  const lineOf = ({ heads }) => (row) =>
    `${row.at(-1)}: ${row.slice(0, 4).join(", ")} (` +
    `${row.slice(4, -1).map((text, at) => `${heads[at + 4]} ${text}`).join(", ")})`;

  /** The verdict on the cube's variants, with the four badges; null where outputs have no layers. */
  const standing = (board) => {
    if (!board.verdict) return board.no_verdict ? h("p.note", {}, board.no_verdict) : null;
    const { verdict, words, meaning, badges, reasons, next_step: next, notes } = board.verdict;
    const badge = ([name, value, told]) => h(`li.is-${value}`, { title: told }, `${name}: `, h("b", {}, value));
    return h(
      "section.panel.verdict",
      { id: "verdict", "aria-label": "Verdict" },
      h("p", {}, pill(verdict, meaning), ` ${words}: ${meaning}.`),
      h("ul.badges", {}, badges.map(badge)),
      h(
        "details",
        {},
        h("summary", {}, "Why, and what next"),
        h("ul", {}, [...reasons, next, ...notes].map((text) => h("li", {}, text))),
      ),
    );
  };

  /** Mark the rows that cannot be told apart from the one under the pointer. */
  const tied = (table) => {
    const letters = (row) => (row.querySelector(".letters")?.textContent || "").split(" ").filter(Boolean);
    const mark = (target) => {
      const mine = target ? letters(target) : [];
      const alike = (row) => row !== target && letters(row).some((one) => mine.includes(one));
      for (const row of table.querySelectorAll("tbody tr")) row.classList.toggle("tied", alike(row));
    };
    table.addEventListener("mouseover", (event) => mark(event.target.closest("tbody tr")));
    table.addEventListener("focusin", (event) => mark(event.target.closest("tbody tr")));
    table.addEventListener("mouseleave", () => mark(null));
    return table;
  };

  explorer.view({
    name: "ranking",
    title: "Leaderboard",
    level: "ranking",
    controls: explorer.board.controls,
    async render(root, page) {
      const board = await explorer.board.of(page);
      const table = explorer.table(page, {
        name: "ranking",
        caption: "Leaderboard",
        columns: columnsOf(board, page),
        rows: explorer.board.found(page, board.rows),
        sort: "rank",
        mark: (row) => (row.rank === null ? "faint" : ""),
      });
      root.append(explorer.board.controls(page), ...decided(board), standing(board) || "", tied(table));
      root.append(explorer.board.notes(board));
    },
  });
}
