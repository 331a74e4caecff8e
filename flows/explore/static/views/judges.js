"use strict";
// How far judges agree, and what two of them gave to the same answers.
{
  const { h, format } = explorer;

  const MOST = 12;
  /** Models of a set of which tables of two judges are drawn. */
  const SHOWN = 8;
  /** How far judges agree: key, title, what it means. */
  const AGREEMENT = [
    ["ac2", "AC2", "Gwet's AC2: 1 perfect, 0 as by guessing; stays high where all scores are close"],
    [
      "alpha",
      "Krippendorff's α",
      "Agreement beyond chance on an interval scale; near 0 where all scores are close, however well judges agree",
    ],
    ["mad", "apart by", "Mean absolute difference of two judges, in points of the scale"],
    ["pearson", "correlation", "Mean over pairs of judges; says how alike they order answers"],
  ];

  // The table

  const unitsColumn = (judges) => {
    const alone = judges.length === 1;
    const units = (row) => (alone ? row.judges[0].units : row.units);
    return {
      key: "units",
      title: alone ? "answers" : "answers of all judges",
      value: units,
      show: (row) => `${format.number(units(row))}${units(row) < explorer.FEW ? " ?" : ""}`,
    };
  };

  const agreementColumn = ([key, title, hint]) => ({
    key,
    title,
    hint,
    value: (row) => row[key],
    show: (row) => format.number(row[key], 2),
  });

  const meanColumn = (name, place) => ({
    key: `mean-${place}`,
    title: `mean of ${name}`,
    value: (row) => row.judges[place]?.mean ?? null,
    show: (row) => {
      const judge = row.judges[place];
      if (!judge) return format.absent;
      return h("span", { title: `${format.number(judge.units)} answers` }, format.number(judge.mean, 2));
    },
  });

  const columnsOf = (page, judges) => {
    const link = (row) => explorer.trialsOf(page, { model: row.model }, row.model);
    return [
      { key: "model", title: "model", left: true, value: (row) => row.model, show: link },
      unitsColumn(judges),
      ...(judges.length === 1 ? [] : AGREEMENT.map(agreementColumn)),
      ...judges.map(meanColumn),
    ];
  };

  // What two judges gave to the same answers

  const tracesOf = ({ counts }, scores) => {
    const most = Math.max(...counts.flat(), 1);
    const names = scores.map(String);
    const cells = counts.flatMap((row, a) =>
      row.map((count, b) => ({ x: names[b], y: names[a], text: String(count), share: count / most, count }))
    );
    const heat = {
      type: "heatmap",
      x: names,
      y: names,
      z: counts.map((row) => row.map((count) => count || null)),
      colorscale: explorer.SCALE,
      showscale: false,
      xgap: 1,
      ygap: 1,
      zmin: 0,
      zmax: most,
      customdata: counts.map((row, a) => row.map((count, b) => [scores[a], scores[b], format.number(count)])),
      hovertemplate: "%{customdata[2]} answers: %{customdata[0]} and %{customdata[1]}<extra></extra>",
    };
    return [heat, explorer.cellTexts(cells.filter((one) => one.count))];
  };

  const chartOf = (page, { model }, pair, scores) => {
    const axis = (name) => ({ title: { text: name }, type: "category", constrain: "domain" });
    return explorer.chart({
      label: `Scores of ${pair.first} and ${pair.second} for ${model}`,
      height: 320,
      name: `judges-${model}`,
      traces: tracesOf(pair, scores),
      layout: { xaxis: axis(pair.second), yaxis: { ...axis(pair.first), scaleanchor: "x" } },
      click: () => explorer.openTrials(page, { model }),
    });
  };

  const panel = (page, model, pair, scores) => {
    const total = pair.counts.flat().reduce((a, b) => a + b, 0);
    const few = total && total < explorer.FEW ? ": few" : "";
    return h(
      "div.panel",
      {},
      explorer.heading(model.model, `${format.number(total)} ${total === 1 ? "answer" : "answers"}${few}`),
      total ? chartOf(page, model, pair, scores) : h("p.empty", {}, "Not rated by both."),
    );
  };

  /** A note on models of which no tables of two judges are drawn; null if there are none. */
  const omitted = (judges, models) => {
    if (judges.length < 2 || models.length <= SHOWN) return null;
    return `Tables of two judges of the first ${SHOWN} of ${models.length} models; choose others above.`;
  };

  const notes = (page, { models }) => [
    page.all("model").length ? null : explorer.limited(page, models.map((one) => one.model)),
    "Scores are means over a judge's repeats, rounded in the tables of two. " +
    `A ? marks fewer than ${explorer.FEW} answers.`,
  ];

  explorer.view({
    name: "judges",
    title: "Judges",
    level: "breaks",
    hint: "Whether judges agree: on the diagonal both gave an answer the same score.",
    ready: (overview) => (overview.judges || []).length > 0,
    async render(root, page) {
      const wanted = page.all("model");
      const model = explorer.bundle ? null : await explorer.shownModels(page, MOST);
      const answer = await page.ask("judges", { ...explorer.livePart(page), model });
      const models = answer.models.filter((one) => !wanted.length || wanted.includes(one.model));
      const panels = (one) => one.pairs.map((pair) => panel(page, one, pair, answer.scores));
      root.append(
        explorer.filters(page, explorer.liveFilters()),
        explorer.table(page, {
          name: "judges",
          rows: models,
          columns: columnsOf(page, answer.judges),
          empty: "These judges rated nothing of what the filters mean.",
        }),
        h("div.grid", {}, models.slice(0, SHOWN).flatMap(panels)),
        explorer.noted(answer, ...notes(page, answer), omitted(answer.judges, models)),
      );
    },
  });
}
