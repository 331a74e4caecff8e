"use strict";
// Rate over one parameter of a task, with intervals, and what was truncated below it.
{
  const { h, format } = explorer;
  const SYMBOLS = ["circle", "square", "diamond", "cross", "triangle-up", "star", "hexagon", "x"];
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const suits = (task) => explorer.varying(task).length > 0;

  // Traces of a model; `one` is {label, colour, symbol, dash, x, points}

  const rateTrace = ({ label, colour, symbol, dash, points }) => {
    const end = (read) => points.map((point) => (point.measured ? Math.max(read(point), 0) : null));
    return {
      type: "scatter",
      mode: "lines+markers",
      y: points.map((point) => point.point),
      connectgaps: false,
      line: { color: colour, width: 2, dash },
      marker: {
        color: points.map((point) => (point.few ? "rgba(0,0,0,0)" : colour)),
        symbol,
        size: 9,
        line: { color: colour, width: 2 },
      },
      error_y: {
        type: "data",
        symmetric: false,
        array: end((point) => point.upper - point.point),
        arrayminus: end((point) => point.point - point.lower),
        color: colour,
        thickness: 1.2,
        width: 3,
      },
      customdata: points.map((point) => [label, explorer.said(point), point.level]),
      hovertemplate: "%{customdata[0]} at %{customdata[2]}<br>%{customdata[1]}<extra></extra>",
    };
  };

  /** Rings around points of which many trials were truncated. */
  const ringTrace = ({ x, points }) => {
    const marked = (point) => point.measured && point.cut > explorer.CUT;
    return {
      type: "scatter",
      mode: "markers",
      showlegend: false,
      hoverinfo: "skip",
      x: x.filter((_, place) => marked(points[place])),
      y: points.filter(marked).map((point) => point.point),
      marker: { symbol: "circle-open", size: 17, color: explorer.theme().bad, line: { width: 2 } },
    };
  };

  const cutTrace = ({ label, colour, symbol, points }) => ({
    type: "scatter",
    mode: "lines+markers",
    showlegend: false,
    yaxis: "y2",
    y: points.map((point) => point.cut),
    line: { color: colour, width: 1, dash: "dot" },
    marker: { color: colour, size: 5, symbol },
    customdata: points.map((point) => [label, format.percent(point.cut), point.level]),
    hovertemplate: "%{customdata[0]} at %{customdata[2]}<br>%{customdata[1]} truncated<extra></extra>",
  });

  const tracesOf = (groups, models, colours) =>
    models.flatMap((label, place) => {
      const model = groups.levels("model").indexOf(label);
      if (model < 0) return [];
      const levels = groups.answer.levels[1];
      const one = {
        label,
        colour: colours.get(label),
        symbol: SYMBOLS[place % SYMBOLS.length],
        dash: DASHES[Math.floor(place / SYMBOLS.length) % DASHES.length],
        x: explorer.aside(levels, place, models.length),
        points: levels.map((level, index) => ({ level, ...groups.at(model, index) })),
      };
      const base = { name: label, legendgroup: label, x: one.x, cliponaxis: false };
      return [rateTrace(one), ringTrace(one), cutTrace(one)].map((trace) => ({ ...base, ...trace }));
    });

  // The view

  /** What the curve may be over, and what it is over; without being told the first parameter. */
  const axisOf = (page, task) => {
    const params = explorer.varying(task).map((one) => [one.name, format.plain(one.name)]);
    const options = [...params.slice(0, 1), ["difficulty", "difficulty"], ...params.slice(1)];
    const chosen = options.find(([name]) => name === page.get("x"));
    return { options, x: (chosen || options[0])[0] };
  };

  const layoutOf = (groups, x) => {
    const levels = groups.answer.levels[1];
    const type = levels.every(format.isNumber) ? "linear" : "category";
    return {
      xaxis: { title: { text: format.plain(x) }, type, anchor: "y2", ...explorer.ticks(levels) },
      yaxis: { title: { text: "rate" }, range: [-0.02, 1.02], tickformat: ".0%", domain: [0.3, 1] },
      yaxis2: { title: { text: "truncated" }, range: [-0.03, 1.03], tickformat: ".0%", domain: [0, 0.2] },
      hovermode: "closest",
      legend: explorer.LEGEND,
    };
  };

  const CAPTION = `An open mark: fewer than ${explorer.FEW} trials. ` +
    `A red ring: more than ${format.percent(explorer.CUT, 0)} truncated. A gap: nothing measured.`;

  const chartOf = (page, groups, { task, x, models, trials }) =>
    explorer.chart({
      label: `Rate of ${models.join(", ")} on ${task.label} over ${format.plain(x)}`,
      height: 520,
      name: `curve-${task.label}`,
      traces: tracesOf(groups, models, explorer.palette(page.overview, models)),
      layout: layoutOf(groups, x),
      click: (point) => {
        const level = explorer.unlabel(point.customdata[2]);
        explorer.openTrials(page, { model: explorer.series(point), ...trials([level]) });
      },
      caption: CAPTION,
    });

  const bestNote = (page, models) => {
    const { length } = page.overview.models;
    if (page.all("model").length || length <= models.length) return null;
    return `The best ${models.length} of ${length} models by their mean over tasks, those that lack tasks last; ` +
      "choose others above.";
  };

  const controls = (page, task, options) =>
    explorer.filters(
      page,
      { models: true, tasks: false, tiers: !explorer.bundle },
      explorer.oneTask(page, task, suits),
      explorer.select(page, "x", options, "over"),
      explorer.rateSelect(page),
    );

  explorer.view({
    name: "curve",
    title: "Difficulty",
    level: "breaks",
    hint: "Rate over one parameter, with 95% intervals; points that differ in other parameters are pooled. " +
      "A click leads to the trials.",
    ready: (overview) => overview.tasks.some(suits),
    async render(root, page) {
      const task = explorer.shownTask(page, suits);
      if (!task) {
        root.append(h("p.empty", {}, "No task here has points that differ in a parameter."));
        return;
      }
      const { options, x } = axisOf(page, task);
      const models = await explorer.shownModels(page);
      const groups = await explorer.groups(page, ["model", x], { task: task.label, models });
      const where = (value) => [...page.all("where"), explorer.condition(x, value)];
      const trials = ([value]) => ({ task: task.label, where: where(value) });
      root.append(
        controls(page, task, options),
        h("div.panel", {}, chartOf(page, groups, { task, x, models, trials })),
        explorer.numbers(page, groups, models, trials),
        explorer.noted(groups.answer, explorer.unmeasured(groups, models), bestNote(page, models)),
      );
    },
  });
}
