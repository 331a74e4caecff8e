"use strict";
// A fingerprint of prompts: the spectrum of their token ids under the tokenizer that was given.
{
  const { h, format } = explorer;
  const MOST = 4;

  explorer.view({
    name: "spectrum", title: "Prompts", level: "breaks",
    hint: "Spectrum of the prompts' token ids under one tokenizer. Ids are labels: this tells how prompts are built, and nothing about a model.",
    ready: overview => Boolean(overview.tokenizer),
    async render(root, page) {
      const known = page.overview.models.map(one => one.label);
      const model = known.includes(page.get("model")) ? page.get("model") : known[0];
      const answer = await page.ask("spectrum", { ...explorer.livePart(page), model });
      const tasks = answer.tasks.slice(0, page.all("task").length ? undefined : MOST);
      const traces = tasks.flatMap((one, place) => {
        const colour = explorer.colours[place % explorer.colours.length];
        const base = { type: "scatter", mode: "lines", x: one.frequency, legendgroup: one.task };
        const band = one.spread.every(format.isNumber) ? [{ ...base, y: one.mean.map((value, at) => value + one.spread[at]), line: { width: 0 }, hoverinfo: "skip", showlegend: false }, { ...base, y: one.mean.map((value, at) => Math.max(value - one.spread[at], 0)), fill: "tonexty", fillcolor: `${colour}22`, line: { width: 0 }, hoverinfo: "skip", showlegend: false }] : [];
        return [...band, { ...base, name: one.task, y: one.mean, line: { color: colour, width: 1.6, dash: ["solid", "dash", "dot"][Math.floor(place / explorer.colours.length) % 3] }, customdata: one.frequency.map(value => [one.task, format.number(1 / value, 1)]), hovertemplate: "%{customdata[0]}: every %{customdata[1]} tokens<br>%{y}<extra></extra>" }];
      });
      root.append(
        explorer.filters(page, { ...explorer.liveFilters(), models: false }, explorer.select(page, "model", known.map(label => [label, label]), "as sent to")),
        h("div.panel", {}, explorer.chart({ label: "Spectrum of prompts by task", height: 480, name: "spectrum", traces,
          layout: { xaxis: { title: { text: "cycles per token" }, range: [0, 0.5] }, yaxis: { title: { text: "amplitude, token ids" }, rangemode: "tozero" }, legend: { orientation: "h", y: 1.02, yanchor: "bottom" } },
          click: point => { location.hash = explorer.trialsLink(page, { model, task: explorer.series(point) }); },
          caption: `Tokenizer ${answer.tokenizer}; mean taken out, ${answer.window} window, amplitude of a sinusoid. Line: mean, band: ± one standard deviation over the prompts of a task.` })),
        explorer.table(page, { name: "spectrum", rows: answer.tasks, columns: [{ key: "task", title: "task", left: true, value: row => row.task }, { key: "prompts", title: "prompts", value: row => row.prompts, show: row => `${row.prompts}${row.prompts < explorer.FEW ? " ?" : ""}` }, { key: "tokens", title: "mean tokens", value: row => row.tokens, show: row => format.number(row.tokens, 0) }] }),
        explorer.noted(answer, `About ${answer.prompts} prompts of each task, the first ones of each of its points.`, answer.tasks.length > tasks.length ? `${tasks.length} of ${answer.tasks.length} tasks are drawn; choose others above.` : null));
    },
  });
}
