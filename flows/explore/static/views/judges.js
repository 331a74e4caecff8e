"use strict";
// How far judges agree, and what two of them gave to the same answers.
{
  const { h, format } = explorer;

  const MOST = 12;
  /** Models of a set of which tables of two judges are drawn. */
  const SHOWN = 8;

  const matrix = (pair, scores) => {
    const total = pair.counts.flat().reduce((a, b) => a + b, 0);
    const most = Math.max(...pair.counts.flat(), 1);
    const there = pair.counts.flatMap((row, a) =>
      row.map((count, b) => ({ count, x: String(scores[b]), y: String(scores[a]) }))
    ).filter((one) => one.count);
    return {
      total,
      traces: [
        {
          type: "heatmap",
          x: scores.map(String),
          y: scores.map(String),
          z: pair.counts.map((row) => row.map((count) => (count || null))),
          colorscale: explorer.SCALE,
          showscale: false,
          xgap: 1,
          ygap: 1,
          zmin: 0,
          zmax: most,
          customdata: pair.counts.map((row, a) => row.map((count, b) => [scores[a], scores[b], format.number(count)])),
          hovertemplate: "%{customdata[2]} answers: %{customdata[0]} and %{customdata[1]}<extra></extra>",
        },
        explorer.cellTexts(there.map((one) => ({ ...one, text: String(one.count), share: one.count / most }))),
      ],
    };
  };

  const number = (key, title, hint) => ({
    key,
    title,
    hint,
    value: (row) => row[key],
    show: (row) => format.number(row[key], 2),
  });

  const columns = (page, judges) => [
    {
      key: "model",
      title: "model",
      left: true,
      value: (row) => row.model,
      show: (row) => h("a", { href: explorer.trialsLink(page, { model: row.model }) }, row.model),
    },
    {
      key: "units",
      title: judges.length === 1 ? "answers" : "answers of all judges",
      value: (row) => (judges.length === 1 ? row.judges[0].units : row.units),
      show: (row) => {
        const units = judges.length === 1 ? row.judges[0].units : row.units;
        return `${format.number(units)}${units < explorer.FEW ? " ?" : ""}`;
      },
    },
    ...(judges.length === 1 ? [] : [
      number("ac2", "AC2", "Gwet's AC2: 1 perfect, 0 as by guessing; stays high where all scores are close"),
      number(
        "alpha",
        "Krippendorff's α",
        "Agreement beyond chance on an interval scale; near 0 where all scores are close, however well judges agree",
      ),
      number("mad", "apart by", "Mean absolute difference of two judges, in points of the scale"),
      number("pearson", "correlation", "Mean over pairs of judges; says how alike they order answers"),
    ]),
    ...judges.map((name, place) => ({
      key: `mean-${place}`,
      title: `mean of ${name}`,
      value: (row) => row.judges[place]?.mean ?? null,
      show: (row) => (row.judges[place]
        ? h(
          "span",
          { title: `${format.number(row.judges[place].units)} answers` },
          format.number(row.judges[place].mean, 2),
        )
        : format.absent),
    })),
  ];

  const panel = (page, model, pair, scores) => {
    const { total, traces } = matrix(pair, scores);
    return h(
      "div.panel",
      {},
      h(
        "h3",
        {},
        model.model,
        " ",
        h(
          "span.status",
          {},
          `${format.number(total)} ${total === 1 ? "answer" : "answers"}${
            total && total < explorer.FEW ? ": few" : ""
          }`,
        ),
      ),
      total
        ? explorer.chart({
          label: `Scores of ${pair.first} and ${pair.second} for ${model.model}`,
          height: 320,
          name: `judges-${model.model}`,
          traces,
          layout: {
            xaxis: { title: { text: pair.second }, type: "category", constrain: "domain" },
            yaxis: { title: { text: pair.first }, type: "category", scaleanchor: "x", constrain: "domain" },
          },
          click: () => {
            location.hash = explorer.trialsLink(page, { model: model.model });
          },
        })
        : h("p.empty", {}, "Not rated by both."),
    );
  };

  explorer.view({
    name: "judges",
    title: "Judges",
    level: "breaks",
    hint: "Whether judges agree: on the diagonal both gave an answer the same score.",
    ready: (overview) => (overview.judges || []).length > 0,
    async render(root, page) {
      const wanted = page.all("model");
      const answer = await page.ask("judges", {
        ...explorer.livePart(page),
        model: explorer.bundle ? null : await explorer.shownModels(page, MOST),
      });
      root.append(explorer.filters(page, explorer.liveFilters()));
      const several = answer.sets.length > 1;
      const notes = [];
      answer.sets.forEach((set, place) => {
        const models = set.models.filter((one) => !wanted.length || wanted.includes(one.model));
        const shown = models.slice(0, SHOWN);
        // Of several sets each has its own order; agreement is among those who saw the same answers.
        if (several) {
          root.append(
            h(
              "h2",
              {},
              `Judged by ${set.judges.join(", ")}`,
              " ",
              h("span.status", {}, `${set.cubes} ${set.cubes === 1 ? "cube" : "cubes"}`),
            ),
          );
        }
        root.append(
          explorer.table(page, {
            name: "judges",
            prefix: several ? `set${place + 1}-` : "",
            rows: models,
            columns: columns(page, set.judges),
            empty: "These judges rated nothing of what the filters mean.",
          }),
          h(
            "div.grid",
            {},
            shown.flatMap((model) => model.pairs.map((pair) => panel(page, model, pair, answer.scores))),
          ),
        );
        if (set.judges.length > 1 && models.length > shown.length) {
          notes.push(
            `${
              several ? `${set.judges.join(", ")}: ` : ""
            }Tables of two judges of the first ${shown.length} of ${models.length} models; choose others above.`,
          );
        }
      });
      const there = new Set(answer.sets.flatMap((set) => set.models.map((one) => one.model)));
      root.append(
        explorer.noted(
          answer,
          there.size < page.overview.models.length && !wanted.length
            ? `${there.size} of ${page.overview.models.length} models; choose others above.`
            : null,
          `Scores are means over a judge's repeats, rounded in the tables of two. A ? marks fewer than ${explorer.FEW} answers.`,
          several ? "Cubes that other judges graded stand apart: agreement is among judges of the same answers." : null,
          ...notes,
        ),
      );
    },
  });
}
