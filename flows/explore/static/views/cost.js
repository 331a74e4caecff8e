"use strict";
// What leads the leaderboard against what it cost, with the front of those that nobody beats in both.
{
  const { h, format } = explorer;
  const { lead, leadName, leadTitle, shown, byScore, extent } = explorer.board;
  const SPENDS = {
    cost_per_1000: { short: "cost", title: "USD for 1000 trials", told: format.money },
    tokens_per_trial: {
      short: "tokens",
      title: "completion tokens for each trial",
      told: (value) => format.number(value, 0),
    },
    latency: { short: "latency", title: "seconds of a reply", told: format.seconds },
  };
  const SCALES = [["log", "logarithmic"], ["linear", "linear"]];
  const HOVER = "<b>%{customdata[0]}</b><br>%{customdata[1]} (%{customdata[2]})<br>%{customdata[3]}<extra></extra>";

  /** Evaluations up to which a chart names all of them. */
  const NAMED = 12;
  const SIDES = ["top", "bottom"];

  const starred = (row) => row.label + (row.rank === null ? "*" : "");

  const someOf = (names) => `${names.slice(0, 12).join(", ")}${names.length > 12 ? " …" : ""}`;

  /** What can be spent here, and what of it is shown. */
  const spending = (page, board) => {
    const there = Object.keys(SPENDS).filter((name) => board.rows.some((row) => format.isNumber(row[name])));
    return { there, spend: there.includes(page.get("spend")) ? page.get("spend") : there[0] };
  };

  const controlsOf = (page, there = []) => {
    const options = there.map((name) => [name, SPENDS[name].short]);
    const pick = options.length > 1 ? explorer.choice(page, "spend", options, "What is spent") : null;
    return explorer.board.controls(page, pick, explorer.choice(page, "x", SCALES, "Scale"));
  };

  /**
   * Where names stand: where there is room for them, away from the nearer edge; neighbours along the axis have theirs
   * above and below.
   */
  const sidesOf = ({ rows, spend, linear, low, high }) => {
    const along = [...rows].sort((a, b) => a[spend] - b[spend]);
    const at = (row) => linear ? row[spend] / high : Math.log(row[spend] / low) / Math.log(high / low);
    const side = (row, place) => `${SIDES[place % SIDES.length]} ${at(row) > 0.5 ? "left" : "right"}`;
    return new Map(along.map((row, place) => [row, side(row, place)]));
  };

  const frontTrace = ({ board, rows, spend, factor }) => {
    const front = rows.filter((row) => row.front.includes(spend)).sort((a, b) => a[spend] - b[spend]);
    return {
      type: "scatter",
      mode: "lines",
      x: front.map((row) => row[spend]),
      y: front.map((row) => factor * lead(board, row).value),
      line: { shape: "hv", dash: "dot", color: explorer.theme().faint, width: 1.5 },
      hoverinfo: "skip",
      showlegend: false,
    };
  };

  const markers = ({ rows, spend }, overview) => {
    const grey = explorer.theme().faint;
    const ahead = (row) => row.front.includes(spend);
    return {
      size: rows.map((row) => (ahead(row) ? 11 : 8)),
      symbol: rows.map((row) => (row.rank === null ? "circle-open" : "circle")),
      color: rows.map((row) => (row.rank === null ? grey : explorer.colour(overview, row.label))),
      opacity: rows.map((row) => (ahead(row) ? 1 : 0.65)),
    };
  };

  const names = ({ rows, spend, few }) => {
    const short = explorer.shortened(rows.map(starred), explorer.narrow() ? 18 : 60);
    return rows.map((row) => (few || row.front.includes(spend) ? ` ${short.get(starred(row))} ` : ""));
  };

  const pointsTrace = (drawn, overview) => {
    const { board, rows, spend, factor } = drawn;
    const sides = sidesOf(drawn);
    const values = rows.map((row) => lead(board, row));
    const said = (row, { value }) => [shown(board, value), format.interval(lead(board, row), !byScore(board))];
    return {
      type: "scatter",
      mode: "markers+text",
      x: rows.map((row) => row[spend]),
      y: values.map((one) => factor * one.value),
      text: names(drawn),
      textposition: rows.map((row) => sides.get(row)),
      textfont: { size: 11 },
      cliponaxis: false,
      showlegend: false,
      marker: markers(drawn, overview),
      error_y: { ...explorer.board.errors(values, !byScore(board)), color: explorer.theme().faint },
      customdata: rows.map((row, place) => [starred(row), ...said(row, values[place]), SPENDS[spend].told(row[spend])]),
      hovertemplate: HOVER,
    };
  };

  const layoutOf = ({ board, spend, linear, low, high }) => {
    const decades = { dtick: high < 10 * low && !explorer.narrow() ? "D1" : "D2", tickformat: ".3~g" };
    const scale = linear ? { type: "linear", rangemode: "tozero" } : { type: "log", ...decades };
    return {
      hovermode: "closest",
      margin: { l: 50, r: 24, t: 16, b: 44 },
      xaxis: { title: { text: SPENDS[spend].title }, ...scale },
      yaxis: { title: { text: leadTitle(board) } },
    };
  };

  /** What the chart says of those that it shows differently, or not at all. */
  const captionOf = ({ rows, spend, linear, few, unknown }) => {
    const free = linear ? [] : rows.filter((row) => row[spend] === 0).map(starred);
    const why = spend === "cost_per_1000" ? "no price of it is declared" : "it is not known";
    return [
      explorer.board.unrankedNote(rows),
      free.length ? `Not on a logarithmic scale, being 0 on it: ${someOf(free)}.` : null,
      unknown.length ? `Not shown, as ${why}: ${someOf(unknown)}.` : null,
      few ? null : "Names are those on the front; others are under the pointer.",
    ].filter(Boolean).join(" ");
  };

  /** What is drawn: the rows that have both, how they are scaled, and who lacks what is spent. */
  const drawnOf = (page, board, spend) => {
    const led = explorer.board.found(page, board.rows).filter((row) => format.isNumber(lead(board, row).value));
    const rows = led.filter((row) => format.isNumber(row[spend]));
    const unknown = led.filter((row) => !format.isNumber(row[spend])).map(starred);
    const [low, high] = extent(rows.map((row) => row[spend]).filter((value) => value > 0));
    const linear = page.get("x") === "linear";
    const factor = byScore(board) ? 1 : 100;
    return { board, spend, rows, unknown, low, high, linear, factor, few: rows.length <= NAMED };
  };

  const chartOf = (page, drawn) => {
    const { board, rows, spend } = drawn;
    return explorer.chart({
      name: "score-and-cost",
      height: 520,
      label: `${leadName(board)} against ${SPENDS[spend].title} of ${rows.length} evaluations`,
      traces: [frontTrace(drawn), pointsTrace(drawn, page.overview)],
      layout: layoutOf(drawn),
      click: (point) => {
        if (point.customdata) location.hash = page.link("trials", { model: rows[point.pointNumber].label });
      },
      caption: captionOf(drawn),
    });
  };

  explorer.view({
    name: "cost",
    title: "Score and cost",
    level: "ranking",
    hint: "Up and left is better. The line is the Pareto front.",
    controls: explorer.board.controls,
    async render(root, page) {
      const board = await explorer.board.of(page);
      const { there, spend } = spending(page, board);
      root.append(controlsOf(page, there));
      const drawn = drawnOf(page, board, spend);
      if (drawn.rows.length) root.append(h("div.panel", {}, chartOf(page, drawn)), explorer.board.notes(board));
      else root.append(h("p.empty", {}, "Nothing here has both a score and what it cost."));
    },
  });
}
