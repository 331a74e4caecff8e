"use strict";
// Rate over one parameter of a task, with intervals, and what was truncated below it.
{
  const { h, format } = explorer;
  const SYMBOLS = ["circle", "square", "diamond", "cross", "triangle-up", "star", "hexagon", "x"];
  const suits = (task) => explorer.varying(task).length > 0;

  const axes = (task) => [
    ["difficulty", "difficulty"],
    ...explorer.varying(task).map((one) => [one.name, format.plain(one.name)]),
  ];

  const traces = (groups, models, colours) =>
    models.flatMap((label, place) => {
      const model = groups.levels("model").indexOf(label);
      if (model < 0) return [];
      const levels = groups.answer.levels[1];
      const points = levels.map((level, index) => ({ level, ...groups.at(model, index) }));
      const colour = colours.get(label);
      const marked = (one) => one.measured && one.cut > explorer.CUT;
      const x = explorer.aside(levels, place, models.length);
      const base = { name: label, legendgroup: label, x, cliponaxis: false };
      return [
        {
          ...base,
          type: "scatter",
          mode: "lines+markers",
          y: points.map((one) => one.point),
          connectgaps: false,
          line: {
            color: colour,
            width: 2,
            dash: ["solid", "dash", "dot", "dashdot"][Math.floor(place / SYMBOLS.length) % 4],
          },
          marker: {
            color: points.map((one) => (one.few ? "rgba(0,0,0,0)" : colour)),
            symbol: SYMBOLS[place % SYMBOLS.length],
            size: 9,
            line: { color: colour, width: 2 },
          },
          error_y: {
            type: "data",
            symmetric: false,
            array: points.map((one) => (one.measured ? Math.max(one.upper - one.point, 0) : null)),
            arrayminus: points.map((one) => (one.measured ? Math.max(one.point - one.lower, 0) : null)),
            color: colour,
            thickness: 1.2,
            width: 3,
          },
          customdata: points.map((one) => [label, explorer.said(one), one.level]),
          hovertemplate: "%{customdata[0]} at %{customdata[2]}<br>%{customdata[1]}<extra></extra>",
        },
        {
          ...base,
          type: "scatter",
          mode: "markers",
          showlegend: false,
          hoverinfo: "skip",
          x: x.filter((_, index) => marked(points[index])),
          y: points.filter(marked).map((one) => one.point),
          marker: { symbol: "circle-open", size: 17, color: explorer.theme().bad, line: { width: 2 } },
        },
        {
          ...base,
          type: "scatter",
          mode: "lines+markers",
          showlegend: false,
          yaxis: "y2",
          y: points.map((one) => one.cut),
          line: { color: colour, width: 1, dash: "dot" },
          marker: { color: colour, size: 5, symbol: SYMBOLS[place % SYMBOLS.length] },
          customdata: points.map((one) => [label, format.percent(one.cut), one.level]),
          hovertemplate: "%{customdata[0]} at %{customdata[2]}<br>%{customdata[1]} truncated<extra></extra>",
        },
      ];
    });

  explorer.view({
    name: "curve",
    title: "Difficulty",
    level: "breaks",
    hint:
      "Rate over one parameter, with 95 % intervals; points that differ in other parameters are pooled. A click leads to the trials.",
    ready: (overview) => overview.tasks.some(suits),
    async render(root, page) {
      const task = explorer.shownTask(page, suits);
      if (!task) {
        root.append(h("p.empty", {}, "No task here has points that differ in a parameter."));
        return;
      }
      const options = axes(task);
      const names = options.map(([name]) => name);
      const first = names.find((name) => name !== "difficulty") || "difficulty";
      const x = names.includes(page.get("x")) ? page.get("x") : first;
      const models = await explorer.shownModels(page);
      const groups = await explorer.groups(page, ["model", x], { task: task.label, models });
      const numeric = groups.answer.levels[1].every(format.isNumber);
      const trials = ([value]) => ({ task: task.label, where: [...page.all("where"), explorer.condition(x, value)] });
      root.append(
        explorer.filters(
          page,
          { models: true, tasks: false, tiers: !explorer.bundle },
          explorer.oneTask(page, task, suits),
          explorer.select(page, "x", [
            options.find(([name]) => name === first),
            ...options.filter(([name]) => name !== first),
          ], "over"),
          explorer.rateSelect(page),
        ),
        h(
          "div.panel",
          {},
          explorer.chart({
            label: `Rate of ${models.join(", ")} on ${task.label} over ${format.plain(x)}`,
            height: 520,
            name: `curve-${task.label}`,
            traces: traces(groups, models, explorer.palette(page.overview, models)),
            layout: {
              xaxis: {
                title: { text: format.plain(x) },
                type: numeric ? "linear" : "category",
                anchor: "y2",
                ...explorer.ticks(groups.answer.levels[1]),
              },
              yaxis: { title: { text: "rate" }, range: [-0.02, 1.02], tickformat: ".0%", domain: [0.3, 1] },
              yaxis2: { title: { text: "truncated" }, range: [-0.03, 1.03], tickformat: ".0%", domain: [0, 0.2] },
              hovermode: "closest",
              legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
            },
            click: (point) => {
              location.hash = explorer.trialsLink(page, {
                model: explorer.series(point),
                ...trials([explorer.unlabel(point.customdata[2])]),
              });
            },
            caption: `An open mark: fewer than ${explorer.FEW} trials. A red ring: more than ${
              format.percent(explorer.CUT, 0)
            } truncated. A gap: nothing measured.`,
          }),
        ),
        explorer.numbers(page, groups, models, trials),
        explorer.noted(
          groups.answer,
          explorer.unmeasured(groups, models),
          page.all("model").length || page.overview.models.length <= models.length
            ? null
            : `The best ${models.length} of ${page.overview.models.length} models by their mean over tasks, those that lack tasks last; choose others above.`,
        ),
      );
    },
  });
}
