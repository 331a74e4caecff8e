"use strict";
// How far judges agree, and what two of them gave to the same answers.
{
  const { h, format } = explorer;

  const MOST = 12;

  const matrix = (pair, scores) => {
    const total = pair.counts.flat().reduce((a, b) => a + b, 0);
    return { total, traces: [{ type: "heatmap", x: scores.map(String), y: scores.map(String), z: pair.counts.map(row => row.map(count => (count || null))), text: pair.counts.map(row => row.map(count => (count ? String(count) : ""))), texttemplate: "%{text}", colorscale: explorer.SCALE, showscale: false, xgap: 1, ygap: 1, zmin: 0,
      customdata: pair.counts.map((row, a) => row.map((count, b) => [scores[a], scores[b], format.number(count)])), hovertemplate: "%{customdata[2]} answers: %{customdata[0]} and %{customdata[1]}<extra></extra>" }] };
  };

  explorer.view({
    name: "judges", title: "Judges", level: "breaks",
    hint: "Whether judges agree: on the diagonal both gave an answer the same score.",
    ready: overview => (overview.judges || []).length > 0,
    async render(root, page) {
      const wanted = page.all("model");
      const answer = await page.ask("judges", { ...explorer.livePart(page), model: explorer.bundle ? null : await explorer.shownModels(page, MOST) });
      const models = answer.models.filter(one => !wanted.length || wanted.includes(one.model));
      const number = (key, title, hint) => ({ key, title, hint, value: row => row[key], show: row => format.number(row[key], 2) });
      const shown = models.slice(0, 8);
      root.append(
        explorer.filters(page, explorer.liveFilters()),
        explorer.table(page, { name: "judges", rows: models, columns: [
          { key: "model", title: "model", left: true, value: row => row.model, show: row => h("a", { href: explorer.trialsLink(page, { model: row.model }) }, row.model) },
          { key: "units", title: "answers of all judges", value: row => row.units, show: row => `${format.number(row.units)}${row.units < explorer.FEW ? " ?" : ""}` },
          number("ac2", "AC2", "Gwet's AC2: 1 perfect, 0 as by guessing; stays high where all scores are close"), number("alpha", "Krippendorff's α", "Agreement beyond chance on an interval scale; near 0 where all scores are close, however well judges agree"),
          number("mad", "apart by", "Mean absolute difference of two judges, in points of the scale"), number("pearson", "correlation", "Mean over pairs of judges; says how alike they order answers"),
          ...answer.judges.map((name, place) => ({ key: `mean-${place}`, title: `mean of ${name}`, value: row => row.judges[place]?.mean ?? null, show: row => (row.judges[place] ? h("span", { title: `${format.number(row.judges[place].units)} answers` }, format.number(row.judges[place].mean, 2)) : format.absent) })),
        ] }),
        h("div.grid", {}, shown.flatMap(model => model.pairs.map(pair => {
          const { total, traces } = matrix(pair, answer.scores);
          return h("div.panel", {}, h("h3", {}, model.model, " ", h("span.status", {}, `${format.number(total)} answers${total && total < explorer.FEW ? ": few" : ""}`)), total ? explorer.chart({
            label: `Scores of ${pair.first} and ${pair.second} for ${model.model}`, height: 320, name: `judges-${model.model}`, traces,
            layout: { xaxis: { title: { text: pair.second }, type: "category", constrain: "domain" }, yaxis: { title: { text: pair.first }, type: "category", scaleanchor: "x", constrain: "domain" } },
            click: () => { location.hash = explorer.trialsLink(page, { model: model.model }); },
          }) : h("p.empty", {}, "Not rated yet."));
        }))),
        explorer.noted(answer, models.length < page.overview.models.length && !wanted.length ? `${models.length} of ${page.overview.models.length} models; choose others above.` : null, `Scores are means over a judge's repeats, rounded in the tables of two. A ? marks fewer than ${explorer.FEW} answers.`, models.length > shown.length ? `Tables of the first ${shown.length} of ${models.length} models; choose others above.` : null));
    },
  });
}
