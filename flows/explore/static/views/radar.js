"use strict";
// A web for each model: its rate on each task with the interval as a band, tier by tier; bars where tasks are too few.
{
  const { h, format } = explorer;
  const MOST = 12;
  /** Tasks that span a web. */
  const CORNERS = 3;
  /** Pixels between a web and the names around it, and between those and the edge. */
  const GAP = 16;

  const closed = (values) => [...values, values[0]];
  const clear = (colour, share) => `${colour}${Math.round(255 * share).toString(16).padStart(2, "0")}`;

  const measured = (read, tasks) =>
    tasks.map((task, place) => ({ ...read(place), task })).filter((one) => one.measured);

  // Traces of a series, which is {there, label, colour}: the rates that there are, in the order of tasks

  const bandTraces = (trace, theta, { there, colour }) => {
    const edge = { ...trace, mode: "lines", theta, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    const [upper, lower] = ["upper", "lower"].map((end) => closed(there.map((one) => one[end])));
    return [{ ...edge, r: upper }, { ...edge, r: lower, fill: "tonext", fillcolor: clear(colour, 0.11) }];
  };

  const pointsTrace = (trace, theta, { there, label, colour }) => ({
    ...trace,
    mode: there.length < CORNERS ? "markers" : "lines+markers",
    r: closed(there.map((one) => one.point)),
    theta,
    line: { color: colour, width: 2 },
    marker: {
      color: closed(there.map((one) => (one.few ? "rgba(0,0,0,0)" : colour))),
      size: 7,
      line: { color: colour, width: 2 },
    },
    customdata: closed(there.map((one) => [label, explorer.said(one)])),
    hovertemplate: "%{customdata[0]}, %{theta}<br>%{customdata[1]}<extra></extra>",
  });

  /** Rings around points of which many trials were truncated. */
  const ringTrace = (trace, { there }) => {
    const cut = there.filter((one) => one.cut > explorer.CUT);
    return {
      ...trace,
      mode: "markers",
      showlegend: false,
      hoverinfo: "skip",
      r: cut.map((one) => one.point),
      theta: cut.map((one) => one.task),
      marker: { symbol: "circle-open", size: 15, color: explorer.theme().bad, line: { width: 2 } },
    };
  };

  const web = (series) => {
    const { there, label } = series;
    if (!there.length) return [];
    const theta = closed(there.map((one) => one.task));
    const trace = { type: "scatterpolar", name: label, legendgroup: label };
    // Two corners are no web, and one is not even a line.
    const band = there.length < CORNERS ? [] : bandTraces(trace, theta, series);
    return [...band, pointsTrace(trace, theta, series), ringTrace(trace, series)];
  };

  const bars = ({ there, label, colour }) => {
    if (!there.length) return [];
    const end = (read) => there.map((one) => Math.max(read(one), 0));
    return [{
      type: "bar",
      name: label,
      x: there.map((one) => one.task),
      y: there.map((one) => one.point),
      marker: {
        color: there.map((one) => (one.few ? clear(colour, 0.3) : colour)),
        line: { color: colour, width: 1.5 },
      },
      error_y: {
        type: "data",
        symmetric: false,
        array: end((one) => one.upper - one.point),
        arrayminus: end((one) => one.point - one.lower),
        color: explorer.theme().text,
        thickness: 1.2,
        width: 4,
      },
      text: there.map((one) => (one.cut > explorer.CUT ? "✂" : "")),
      textposition: "inside",
      insidetextanchor: "start",
      customdata: there.map((one) => [label, explorer.said(one)]),
      hovertemplate: "%{customdata[0]}, %{x}<br>%{customdata[1]}<extra></extra>",
    }];
  };

  /** Pixels beside a web in which the names around it, clockwise from the top, have room. */
  const beside = (names, width) => {
    const radii = names.map((name, place) =>
      (width / 2 - explorer.widest([name]) - GAP) /
      Math.max(Math.abs(Math.sin((2 * Math.PI * place) / names.length)), 0.01)
    );
    return width / 2 - Math.max(Math.min(width / 2 - GAP, ...radii), width / 8);
  };

  /** The layout of a web of some tasks, by its width. */
  explorer.around = (tasks) => (width) => {
    const axis = explorer.named(tasks, explorer.narrow() ? 10 : 24);
    const side = beside(axis.ticktext, width);
    return {
      polar: {
        radialaxis: { range: [0, 1], tickformat: ".0%", angle: 90, tickangle: 90 },
        angularaxis: { ...axis, categoryarray: tasks, direction: "clockwise" },
      },
      margin: { l: side, r: side, t: 30, b: 30 },
      legend: { orientation: "h", y: -0.12 },
    };
  };

  const barLayout = (tasks, series) => {
    const drawn = new Set(series.flatMap((one) => one.there.map((point) => point.task)));
    return {
      barmode: "group",
      bargap: 0.4,
      xaxis: explorer.named(tasks.filter((task) => drawn.has(task))),
      yaxis: { range: [0, 1.02], tickformat: ".0%" },
      showlegend: true,
      legend: { orientation: "h", y: -0.12 },
    };
  };

  // Panels: each is {title, series, trials}, of which `trials` says what a series' trials are

  /** Whether tasks are too few to span a web, so that bars are drawn. */
  const isFlat = ({ series }) => Math.max(0, ...series.map((one) => one.there.length)) < CORNERS;

  const isEmpty = ({ series }) => series.every((one) => !one.there.length);

  const drawn = (page, tasks, panel) => {
    const { title, series, trials } = panel;
    const flat = isFlat(panel);
    if (isEmpty(panel)) return h("div.panel", {}, h("h2", {}, title), h("p.empty", {}, "Nothing measured."));
    const chart = explorer.chart({
      label: `Rates by task: ${title}`,
      height: 400,
      name: `spider-${title}`,
      traces: series.flatMap(flat ? bars : web),
      layout: flat ? barLayout(tasks, series) : explorer.around(tasks),
      click: (point) => {
        const task = explorer.unlabel(flat ? point.x : point.theta);
        explorer.openTrials(page, { ...trials(explorer.series(point)), task });
      },
    });
    return h("div.panel", {}, h("h2", {}, title), chart);
  };

  /** A panel for each tier with a series for each model, or the other way round. */
  const panelsOf = (page, groups, models) => {
    const tasks = groups.levels("task");
    const tiers = groups.levels("tier");
    const colours = explorer.palette(page.overview, models);
    const place = (label) => groups.levels("model").indexOf(label);
    const there = (label, tier) => measured((task) => groups.at(place(label), tier, task), tasks);
    const shown = models.filter((label) => place(label) >= 0);
    const byTier = (label) => (tier, number) => ({
      there: there(label, number),
      label: tier,
      colour: explorer.colours[number % explorer.colours.length],
    });
    const byModel = (number) => (label) => ({ there: there(label, number), label, colour: colours.get(label) });
    if (page.get("webs") === "one") {
      return shown.map((label) => (
        { title: label, series: tiers.map(byTier(label)), trials: (tier) => ({ model: label, tier }) }
      ));
    }
    return tiers.map((tier, number) => (
      { title: tier, series: shown.map(byModel(number)), trials: (label) => ({ model: label, tier }) }
    ));
  };

  const legend = (panels) => {
    const webless = panels.some((panel) => isFlat(panel) && !isEmpty(panel));
    const keys = [
      webless ? "Fewer than three tasks span no web: bars, with 95% intervals." : null,
      `Open mark, pale bar: fewer than ${explorer.FEW} trials.`,
      `Red ring, ✂: more than ${format.percent(explorer.CUT, 0)} truncated.`,
      "A task without a mark was not measured in that tier.",
    ];
    return h("p.legend", {}, keys.filter(Boolean).map((text) => h("span.key", {}, text)));
  };

  const WEBS = [["tier", "a web for each tier"], ["one", "a web for each model"]];

  explorer.view({
    name: "radar",
    title: "Spider",
    level: "breaks",
    hint: "Rate on each task with its 95% interval as a band.",
    ready: (overview) => overview.tasks.length > 2,
    async render(root, page) {
      const models = (await explorer.shownModels(page, 3)).slice(0, MOST);
      const groups = await explorer.groups(page, ["model", "tier", "task"], { models });
      const panels = panelsOf(page, groups, models);
      const choice = explorer.choice(page, "webs", WEBS, "Webs");
      root.append(
        explorer.filters(page, { models: true }, choice, explorer.rateSelect(page)),
        h("div.grid", {}, panels.map((panel) => drawn(page, groups.levels("task"), panel))),
        legend(panels),
        explorer.numbers(page, groups, models, ([tier, task]) => ({ tier, task })),
        explorer.noted(groups.answer, explorer.unmeasured(groups, models), explorer.limited(page, models)),
      );
    },
  });
}
