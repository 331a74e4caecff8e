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

  const web = ({ there, label, colour }) => {
    if (!there.length) return [];
    const theta = closed(there.map((one) => one.task));
    const trace = { type: "scatterpolar", name: label, legendgroup: label };
    const cut = there.filter((one) => one.cut > explorer.CUT);
    // Two corners are no web, and one is not even a line.
    const band = there.length < CORNERS ? [] : [
      {
        ...trace,
        mode: "lines",
        r: closed(there.map((one) => one.upper)),
        theta,
        line: { width: 0 },
        hoverinfo: "skip",
        showlegend: false,
      },
      {
        ...trace,
        mode: "lines",
        r: closed(there.map((one) => one.lower)),
        theta,
        fill: "tonext",
        fillcolor: clear(colour, 0.11),
        line: { width: 0 },
        hoverinfo: "skip",
        showlegend: false,
      },
    ];
    return [
      ...band,
      {
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
      },
      {
        ...trace,
        mode: "markers",
        showlegend: false,
        hoverinfo: "skip",
        r: cut.map((one) => one.point),
        theta: cut.map((one) => one.task),
        marker: { symbol: "circle-open", size: 15, color: explorer.theme().bad, line: { width: 2 } },
      },
    ];
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

  const bars = (
    { there, label, colour },
  ) => (there.length
    ? [{
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
        array: there.map((one) => Math.max(one.upper - one.point, 0)),
        arrayminus: there.map((one) => Math.max(one.point - one.lower, 0)),
        color: explorer.theme().text,
        thickness: 1.2,
        width: 4,
      },
      text: there.map((one) => (one.cut > explorer.CUT ? "✂" : "")),
      textposition: "inside",
      insidetextanchor: "start",
      customdata: there.map((one) => [label, explorer.said(one)]),
      hovertemplate: "%{customdata[0]}, %{x}<br>%{customdata[1]}<extra></extra>",
    }]
    : []);

  explorer.view({
    name: "radar",
    title: "Spider",
    level: "breaks",
    hint: "Rate on each task with its 95 % interval as a band.",
    ready: (overview) => overview.tasks.length > 2,
    async render(root, page) {
      const models = (await explorer.shownModels(page, 3)).slice(0, MOST);
      const groups = await explorer.groups(page, ["model", "tier", "task"], { models });
      const tasks = groups.levels("task");
      const tiers = groups.levels("tier");
      const colours = explorer.palette(page.overview, models);
      const together = page.get("webs") === "one";
      let webless = false;
      const panel = (title, series, trials) => {
        const flat = Math.max(0, ...series.map((one) => one.there.length)) < CORNERS;
        const traces = series.flatMap(flat ? bars : web);
        webless ||= flat && traces.length > 0;
        const square = {
          barmode: "group",
          bargap: 0.4,
          xaxis: explorer.named(
            tasks.filter((task) => series.some((one) => one.there.some((point) => point.task === task))),
          ),
          yaxis: { range: [0, 1.02], tickformat: ".0%" },
          showlegend: true,
          legend: { orientation: "h", y: -0.12 },
        };
        return h(
          "div.panel",
          {},
          h("h3", {}, title),
          traces.length
            ? explorer.chart({
              label: `Rates by task: ${title}`,
              height: 400,
              name: `spider-${title}`,
              traces,
              layout: flat ? square : explorer.around(tasks),
              click: (point) => {
                location.hash = explorer.trialsLink(page, {
                  ...trials(explorer.series(point)),
                  task: explorer.unlabel(flat ? point.x : point.theta),
                });
              },
            })
            : h("p.empty", {}, "Nothing measured."),
        );
      };
      const place = (label) => groups.levels("model").indexOf(label);
      const shown = models.filter((label) => place(label) >= 0);
      const there = (label, tier) => measured((task) => groups.at(place(label), tier, task), tasks);
      const panels = together
        ? shown.map((label) =>
          panel(
            label,
            tiers.map((tier, number) => ({
              there: there(label, number),
              label: tier,
              colour: explorer.colours[number % explorer.colours.length],
            })),
            (tier) => ({ model: label, tier }),
          )
        )
        : tiers.map((tier, number) =>
          panel(
            tier,
            shown.map((label) => ({ there: there(label, number), label, colour: colours.get(label) })),
            (label) => ({ model: label, tier }),
          )
        );
      root.append(
        explorer.filters(
          page,
          { models: true },
          explorer.choice(page, "webs", [["tier", "a web for each tier"], ["one", "a web for each model"]], "Webs"),
          explorer.rateSelect(page),
        ),
        h("div.grid", {}, panels),
        h(
          "p.legend",
          {},
          webless ? h("span.key", {}, "Fewer than three tasks span no web: bars, with 95 % intervals.") : null,
          h("span.key", {}, `Open mark, pale bar: fewer than ${explorer.FEW} trials.`),
          h("span.key", {}, `Red ring, ✂: more than ${format.percent(explorer.CUT, 0)} truncated.`),
          h("span.key", {}, "A task without a mark was not measured in that tier."),
        ),
        explorer.numbers(page, groups, models, ([tier, task]) => ({ tier, task })),
        explorer.noted(
          groups.answer,
          explorer.unmeasured(groups, models),
          page.overview.models.length > models.length
            ? `${models.length} of ${page.overview.models.length} models; choose others above.`
            : null,
        ),
      );
    },
  });
}
