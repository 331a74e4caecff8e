"use strict";
// What leads the leaderboard, or another column of it, against a number or date that is said of the models.
{
  const { h, format } = explorer;
  const { lead, leadTitle, shown, byScore, errors } = explorer.board;
  const VALUES = {
    lead: "what leads the leaderboard",
    accuracy: "accuracy",
    score_per_token: "score/token",
    correct_per_1000_tokens: "right/1k tok",
    composite: "composite",
    tokens_per_trial: "tokens",
    cost_per_1000: "cost",
    latency: "latency",
    truncated: "truncated",
  };
  const HOVER = "<b>%{customdata[1]}</b> · %{x}<br>%{customdata[2]} (%{customdata[3]})<extra>%{customdata[0]}</extra>";
  /** The line of those that do not say what lines are by. */
  const LACKING = "–";

  const suits = (facet) => (facet.numeric || facet.dated) && facet.levels.length > 1;
  const plain = (facet) => facet.name.replace(/^facet_/, "");
  const bounded = ({ estimate }) => format.isNumber(estimate.lower) && format.isNumber(estimate.upper);
  const ends = ({ estimate }, { share, text }) =>
    share ? format.interval(estimate) : `${text(estimate.lower)} – ${text(estimate.upper)}`;

  // Lines: each is [name, points], and each point {x, estimate, label}

  /** Points that no line joins, with their intervals. */
  const scattered = (name, points, marker, told) => {
    const { share, text } = told;
    const factor = share ? 100 : 1;
    const all = points.every(bounded);
    const interval = (one) => (all ? ends(one, told) : "");
    const bars = { ...errors(points.map((one) => one.estimate), share), color: marker.color };
    return [{
      type: "scatter",
      mode: "markers",
      name,
      x: points.map((one) => one.x),
      y: points.map((one) => factor * one.estimate.value),
      marker: { size: 7, ...marker },
      legendgroup: name,
      ...(all ? { error_y: bars } : {}),
      customdata: points.map((one) => [name, one.label, text(one.estimate.value), interval(one)]),
      hovertemplate: HOVER,
    }];
  };

  /**
   * Whether a line may join points: it says that they are one thing at different places, so that two at one place are
   * none.
   */
  const joinable = (points) => new Set(points.map((one) => one.x)).size === points.length;

  const translucent = (colour) => {
    const number = parseInt(colour.slice(1), 16);
    return `rgba(${number >> 16}, ${(number >> 8) & 255}, ${number & 255}, 0.16)`;
  };

  /** The band of the intervals of a line; nothing if any has none. */
  const band = (name, points, colour, factor) => {
    if (!points.every(bounded)) return [];
    const edge = {
      type: "scatter",
      mode: "lines",
      x: points.map((one) => one.x),
      line: { width: 0 },
      hoverinfo: "skip",
      showlegend: false,
      legendgroup: name,
    };
    const values = (which) => points.map((one) => factor * one.estimate[which]);
    return [
      { ...edge, y: values("lower") },
      { ...edge, y: values("upper"), fill: "tonexty", fillcolor: translucent(colour) },
    ];
  };

  /** A line with the band of its intervals. */
  const joined = (name, points, colour, told) => {
    const { share, text } = told;
    const factor = share ? 100 : 1;
    const interval = (one) => (bounded(one) ? ends(one, told) : "");
    return [...band(name, points, colour, factor), {
      type: "scatter",
      mode: "lines+markers",
      name,
      x: points.map((one) => one.x),
      y: points.map((one) => factor * one.estimate.value),
      line: { color: colour, width: 2 },
      marker: { size: 7 },
      customdata: points.map((one) => [name, one.label, text(one.estimate.value), interval(one)]),
      legendgroup: name,
      hovertemplate: HOVER,
    }];
  };

  const ordered = (points) => {
    const there = points.filter((one) => format.isNumber(one.estimate.value));
    return there.sort((a, b) => (a.x < b.x ? -1 : a.x > b.x ? 1 : 0));
  };

  /** Rates on each task, as a line for each. */
  const linesByTask = async (page, rows, field) => {
    const rates = await explorer.groups(page, ["model", "task"]);
    const rate = (row, place) => {
      const { point, ...ends } = rates.at(rates.levels("model").indexOf(row.label), place);
      return { value: point, ...ends };
    };
    const point = (row, place) => ({ x: row.facets[field], label: row.label, estimate: rate(row, place) });
    return rates.levels("task").map((task, place) => [task, ordered(rows.map((row) => point(row, place)))]);
  };

  /** Rows by what lines are by. */
  const series = (rows, name) => {
    const lines = new Map();
    for (const row of rows) {
      const key = name === "none" ? "all" : String(row.facets[name] ?? row[name] ?? LACKING);
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(row);
    }
    return [...lines];
  };

  // What the address means

  /** What a row has of a value, by its name: its estimate, if it is one. */
  const estimateOf = (board, row, what) => {
    const value = what === "lead" ? lead(board, row) : what === "composite" ? row.composite?.score : row[what];
    return typeof value === "object" && value ? value : { value };
  };

  /** The facet, the value and the lines that are chosen, among those that there are. */
  const choicesOf = (page, board) => {
    const { facets } = page.overview;
    const numeric = facets.filter(suits);
    const step = numeric.find((facet) => /step|epoch|iter/i.test(facet.name));
    const against = numeric.find((facet) => facet.name === page.get("against")) || step || numeric[0];
    const texts = facets.filter((one) => !one.numeric && !one.dated && one.levels.length > 1).map(plain);
    const there = ["task", "none", ...texts, "template", "sampler"];
    const has = (name) => board.rows.some((row) => format.isNumber(estimateOf(board, row, name).value));
    const values = Object.entries(VALUES).filter(([name]) => name === "lead" || has(name));
    return {
      numeric,
      against,
      field: plain(against),
      there,
      line: there.includes(page.get("lines")) ? page.get("lines") : texts[0] || "none",
      values,
      what: values.some(([name]) => name === page.get("value")) ? page.get("value") : "lead",
    };
  };

  const controlsOf = (page, { numeric, against, there, line, values }) => {
    const facets = numeric.map((facet) => [facet.name, format.plain(facet.name)]);
    const lines = there.map((name) => [name, name === "none" ? "all together" : name]);
    return explorer.board.controls(
      page,
      explorer.select(page, "against", facets, "against", against.name),
      explorer.select(page, "value", values, "show"),
      explorer.select(page, "lines", lines, "a line for each", line),
    );
  };

  /** How the shown value is read of a row and told: its estimate, whether it is a share, and its text. */
  const valueOf = (board, what) => {
    const share = what === "lead" ? !byScore(board) : what === "accuracy" || what === "truncated";
    const text = {
      lead: (value) => shown(board, value),
      accuracy: format.percent,
      truncated: format.percent,
      cost_per_1000: format.money,
      latency: format.seconds,
      composite: (value) => format.number(value, 2),
      tokens_per_trial: (value) => format.number(value, 0),
    }[what] ?? format.number;
    return { share, text, estimate: (row) => estimateOf(board, row, what) };
  };

  // The chart

  const RATES = { share: true, text: format.percent };

  const tracesOf = (lines, apart, told) =>
    lines.flatMap(([name, points], place) => {
      const color = explorer.colours[place % explorer.colours.length];
      return apart.includes(name) ? scattered(name, points, { color }, told) : joined(name, points, color, told);
    });

  const captionOf = ({ line, field }, rows, others, apart) => {
    const left = `Left out: ${others.length} without a rank, as they were asked other questions or not all of them.`;
    return [
      !others.length ? null : line === "task" ? left : explorer.board.unrankedNote(rows),
      apart.length
        ? `No line joins evaluations that do not say their ${line}, or of which several have the same ${field}: ` +
          `${apart.join(", ")}.`
        : null,
    ].filter(Boolean).join(" ");
  };

  const axisOf = (against) => {
    const { levels } = against;
    const spread = against.numeric && levels[0] > 0 && levels[levels.length - 1] / levels[0] > 20;
    const scale = against.dated
      ? { type: "date" }
      : spread
      ? { type: "log", dtick: "D2", tickformat: ".3~g" }
      : { type: "linear" };
    return { title: { text: format.plain(against.name) }, ...scale };
  };

  const titleOf = (board, { line, what }, share) => {
    if (line === "task") return `${board.mode}, %`;
    return what === "lead" ? leadTitle(board) : VALUES[what] + (share ? ", %" : "");
  };

  /** All that is drawn of some rows: traces, the text below them, and whether values are shares. */
  const drawnOf = async (page, board, choices, rows) => {
    const { line, what, field } = choices;
    const byTask = line === "task";
    const value = valueOf(board, what);
    const told = byTask ? RATES : value;
    const point = (row, star = "") => ({
      x: row.facets[field],
      label: row.label + star,
      estimate: value.estimate(row),
    });
    const ranked = rows.filter((row) => row.rank !== null);
    const others = rows.filter((row) => row.rank === null);
    const lines = byTask
      ? await linesByTask(page, ranked, field)
      : series(ranked, line).map(([name, mine]) => [name, ordered(mine.map((row) => point(row)))]);
    const apart = lines.filter(([name, points]) => name === LACKING || !joinable(points)).map(([name]) => name);
    const traces = tracesOf(lines, apart, told);
    if (others.length && !byTask) {
      const marker = { color: explorer.theme().faint, symbol: "circle-open" };
      traces.push(...scattered("without a rank*", ordered(others.map((row) => point(row, "*"))), marker, told));
    }
    return { traces, caption: captionOf(choices, rows, others, apart), shares: told.share, share: value.share };
  };

  const chartOf = (board, choices, { traces, caption, shares, share }) => {
    const { against, field, line, what } = choices;
    return explorer.chart({
      name: `against-${field}`,
      height: 520,
      traces,
      label: `${what} against ${field}, a line for each ${line}`,
      caption: caption || null,
      layout: {
        hovermode: "closest",
        showlegend: traces.filter((one) => one.showlegend !== false).length > 1,
        xaxis: axisOf(against),
        yaxis: { title: { text: titleOf(board, choices, share) }, rangemode: shares ? "normal" : "tozero" },
      },
    });
  };

  explorer.view({
    name: "curves",
    title: "Against a facet",
    level: "ranking",
    hint: "How scores go with a number or date that is said of the models: training step, size, release. " +
      "Bands are intervals.",
    ready: (overview) => overview.facets.some(suits),
    controls: explorer.board.controls,
    async render(root, page) {
      const board = await explorer.board.of(page);
      const choices = choicesOf(page, board);
      const found = explorer.board.found(page, board.rows);
      const rows = found.filter((row) => row.facets[choices.field] !== undefined);
      root.append(controlsOf(page, choices));
      const drawn = await drawnOf(page, board, choices, rows);
      root.append(
        rows.length
          ? h("div.panel", {}, chartOf(board, choices, drawn))
          : h("p.empty", {}, `No model here says its ${choices.field}.`),
        explorer.board.notes(board),
      );
    },
  });
}
