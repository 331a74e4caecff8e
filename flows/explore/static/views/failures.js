"use strict";
// What became of the trials: right, wrong, and the ways in which there is no answer to grade.
{
  const { h, format } = explorer;
  const KINDS = [
    ["correct", "right", "#2f9e6e", ""],
    ["wrong", "wrong", "#c98a3f", "/"],
    ["invalid", "no answer read", "#8f6ad2", "x"],
    ["refused", "refused", "#c0507f", "."],
    ["truncated", "truncated", "#b3372f", "\\"],
    ["transport", "no reply", "#6b7683", "-"],
    ["missing", "not asked yet", "#b9c0c9", "+"],
  ];
  const STATUS = {
    correct: "correct",
    wrong: "incorrect",
    invalid: "invalid",
    refused: "refused",
    truncated: "truncated",
    transport: "transport",
  };

  const counts = (group) => ({ ...group, wrong: group.completed - group.correct - group.invalid - group.refused });

  explorer.view({
    name: "failures",
    title: "Failures",
    level: "breaks",
    hint:
      "What became of the trials: did the model fail, or the reading of its answer, the limit of tokens, the endpoint?",
    async render(root, page) {
      const by = ["model", "task"].includes(page.get("by")) ? page.get("by") : "model";
      const models = by === "model" ? page.all("model") : [];
      const groups = await explorer.groups(
        page,
        [by],
        by === "task" && page.all("model").length ? { models: page.all("model") } : {},
      );
      const order = by === "model"
        ? explorer.best(await explorer.groups(page, ["model", "task"]))
        : [...groups.levels("task")];
      const names = order.filter((name) =>
        groups.levels(by).includes(name) && (!models.length || models.includes(name))
      );
      const found = names.map((name) => counts(groups.at(groups.levels(by).indexOf(name))));
      const planned = found.map((one) => one.trials + one.transport + one.missing);
      const traces = KINDS.filter(([key]) => found.some((one) => one[key] > 0)).map(([key, name, colour, shape]) => ({
        type: "bar",
        orientation: "h",
        name,
        y: names,
        x: found.map((one, place) => (planned[place] ? one[key] / planned[place] : null)),
        marker: {
          color: colour,
          pattern: { shape, fillmode: "overlay", fgcolor: "rgba(255,255,255,0.6)", solidity: 0.2, size: 7 },
        },
        meta: key,
        customdata: found.map((one, place) => [format.number(one[key]), format.number(planned[place])]),
        hovertemplate: "%{y}<br>%{customdata[0]} of %{customdata[1]} (%{x:.1%})<extra>%{fullData.name}</extra>",
      }));
      const axis = explorer.named(names);
      const legend = explorer.narrow() ? 44 * traces.length : 0; // a line each, in at most half of the chart's height
      root.append(
        explorer.filters(
          page,
          { models: true },
          explorer.choice(page, "by", [["model", "by model"], ["task", "by task"]], "Rows"),
        ),
        h(
          "div.panel",
          {},
          explorer.chart({
            label: "Outcomes of trials",
            height: Math.max(110 + 26 * names.length, legend),
            name: "failures",
            traces,
            layout: {
              barmode: "stack",
              bargap: 0.25,
              margin: { l: explorer.widest(axis.ticktext) + 12, r: 26, t: 16, b: 44 },
              xaxis: { tickformat: ".0%", range: [0, 1], automargin: false, ticklabeloverflow: "allow" },
              yaxis: { ...axis, autorange: "reversed", automargin: false },
              legend: { orientation: "h", y: 1.01, yanchor: "bottom", traceorder: "normal" },
            },
            click: (point) => {
              const status = STATUS[point.data.meta];
              if (status) location.hash = explorer.trialsLink(page, { [by]: explorer.unlabel(point.y), status });
            },
            caption:
              "Shares of the planned trials. No answer read: the reply holds none in the asked form, and counts as wrong.",
          }),
        ),
        explorer.table(page, {
          name: "failures",
          rows: found.map((one, place) => ({ ...one, name: names[place], planned: planned[place] })),
          columns: [
            {
              key: "name",
              title: by,
              left: true,
              value: (row) => row.name,
              show: (row) => h("a", { href: explorer.trialsLink(page, { [by]: row.name }) }, row.name),
            },
            { key: "planned", title: "planned", value: (row) => row.planned },
            ...KINDS.map(([key, title]) => ({
              key,
              title,
              value: (row) => row[key],
              show: (row) => (row[key] && STATUS[key]
                ? h(
                  "a",
                  { href: explorer.trialsLink(page, { [by]: row.name, status: STATUS[key] }) },
                  format.number(row[key]),
                )
                : format.number(row[key])),
            })),
          ],
        }),
        explorer.noted(groups.answer),
      );
    },
  });
}
