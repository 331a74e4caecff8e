"use strict";
// What became of the trials: right, wrong, and the ways in which there is no answer to grade.
{
  const { h, format } = explorer;
  /** Kinds of outcomes: key, name, colour, pattern, and the status of their trials. */
  const KINDS = [
    ["correct", "right", "#2f9e6e", "", "correct"],
    ["wrong", "wrong", "#c98a3f", "/", "incorrect"],
    ["invalid", "no answer read", "#8f6ad2", "x", "invalid"],
    ["refused", "refused", "#c0507f", ".", "refused"],
    ["truncated", "truncated", "#b3372f", "\\", "truncated"],
    ["transport", "no reply", "#6b7683", "-", "transport"],
    ["missing", "not asked yet", "#b9c0c9", "+", null],
  ];

  /** Rows by the order of models or tasks, with what became of each one's trials. */
  const rowsOf = async (page, by) => {
    const wanted = page.all("model");
    const groups = await explorer.groups(page, [by], by === "task" && wanted.length ? { models: wanted } : {});
    const order = by === "model"
      ? explorer.best(await explorer.groups(page, ["model", "task"]))
      : groups.levels("task");
    const there = groups.levels(by);
    const meant = (name) => there.includes(name) && (by === "task" || !wanted.length || wanted.includes(name));
    const rows = order.filter(meant).map((name) => {
      const group = groups.at(there.indexOf(name));
      const wrong = group.completed - group.correct - group.invalid - group.refused;
      return { ...group, wrong, name, planned: group.trials + group.transport + group.missing };
    });
    return { rows, answer: groups.answer };
  };

  const trace = (rows, [key, name, colour, shape, status]) => ({
    type: "bar",
    orientation: "h",
    name,
    y: rows.map((row) => row.name),
    x: rows.map((row) => (row.planned ? row[key] / row.planned : null)),
    marker: explorer.patterned(colour, shape),
    meta: status,
    customdata: rows.map((row) => [format.number(row[key]), format.number(row.planned)]),
    hovertemplate: "%{y}<br>%{customdata[0]} of %{customdata[1]} (%{x:.1%})<extra>%{fullData.name}</extra>",
  });

  const layoutOf = (axis) => ({
    barmode: "stack",
    bargap: 0.25,
    margin: { l: explorer.widest(axis.ticktext) + 12, r: 26, t: 16, b: 44 },
    xaxis: { tickformat: ".0%", range: [0, 1], automargin: false, ticklabeloverflow: "allow" },
    yaxis: { ...axis, autorange: "reversed", automargin: false },
    legend: { orientation: "h", y: 1.01, yanchor: "bottom", traceorder: "normal" },
  });

  const chartOf = (page, rows, by) => {
    const traces = KINDS.filter(([key]) => rows.some((row) => row[key] > 0)).map((kind) => trace(rows, kind));
    const legend = explorer.narrow() ? 44 * traces.length : 0; // a line each, in at most half of the chart's height
    return explorer.chart({
      label: "Outcomes of trials",
      height: Math.max(110 + 26 * rows.length, legend),
      name: "failures",
      traces,
      layout: layoutOf(explorer.named(rows.map((row) => row.name))),
      click: (point) => {
        const status = point.data.meta;
        if (status) explorer.openTrials(page, { [by]: explorer.unlabel(point.y), status });
      },
      caption: "Shares of the planned trials. " +
        "No answer read: the reply holds none in the asked form, and counts as wrong.",
    });
  };

  const countColumn = (page, by, [key, title, , , status]) => ({
    key,
    title,
    value: (row) => row[key],
    show: (row) => {
      const text = format.number(row[key]);
      return row[key] && status ? explorer.trialsOf(page, { [by]: row.name, status }, text) : text;
    },
  });

  /** Replies with an end of their own, of whatever outcome. */
  const endColumn = (page, by, end) => ({
    key: end.where,
    title: end.title,
    value: (row) => end[by][row.name] || 0,
    show: (row) => {
      const [count, where] = [end[by][row.name] || 0, [...page.all("where"), end.where]];
      return count ? explorer.trialsOf(page, { [by]: row.name, where }, format.number(count)) : "0";
    },
  });

  const columnsOf = (page, by, ends) => {
    const link = (row) => explorer.trialsOf(page, { [by]: row.name }, row.name);
    return [
      { key: "name", title: by, left: true, value: (row) => row.name, show: link },
      { key: "planned", title: "planned", value: (row) => row.planned },
      ...KINDS.map((kind) => countColumn(page, by, kind)),
      ...ends.map((end) => endColumn(page, by, end)),
    ];
  };

  explorer.view({
    name: "failures",
    title: "Failures",
    level: "breaks",
    hint:
      "What became of the trials: did the model fail, or the reading of its answer, the limit of tokens, the endpoint?",
    async render(root, page) {
      const by = ["model", "task"].includes(page.get("by")) ? page.get("by") : "model";
      const { rows, answer } = await rowsOf(page, by);
      const asked = by === "task" ? { model: page.all("model") } : {};
      const ends = explorer.bundle ? [] : (await page.ask("ends", { ...explorer.livePart(page), ...asked })).ends;
      const choice = explorer.choice(page, "by", [["model", "by model"], ["task", "by task"]], "Rows");
      root.append(
        explorer.filters(page, { models: true }, choice),
        h("div.panel", {}, chartOf(page, rows, by)),
        explorer.table(page, { name: "failures", rows, columns: columnsOf(page, by, ends) }),
        explorer.noted(answer),
      );
    },
  });
}
