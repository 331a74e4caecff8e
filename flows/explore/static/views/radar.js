"use strict";
// A web for each model: its rate on each task with the interval as a band, tier by tier.
{
  const { h, format } = explorer;
  const MOST = 12;

  const closed = values => [...values, values[0]];
  const clear = (colour, share) => `${colour}${Math.round(255 * share).toString(16).padStart(2, "0")}`;

  const web = (read, tasks, label, colour) => {
    const points = tasks.map((_, place) => read(place));
    const there = points.map((one, place) => ({ ...one, task: tasks[place] })).filter(one => one.measured);
    if (!there.length) return [];
    const theta = closed(there.map(one => one.task));
    const trace = { type: "scatterpolar", name: label, legendgroup: label };
    const cut = there.filter(one => one.cut > explorer.CUT);
    return [
      { ...trace, mode: "lines", r: closed(there.map(one => one.upper)), theta, line: { width: 0 }, hoverinfo: "skip", showlegend: false },
      { ...trace, mode: "lines", r: closed(there.map(one => one.lower)), theta, fill: "tonext", fillcolor: clear(colour, 0.11), line: { width: 0 }, hoverinfo: "skip", showlegend: false },
      { ...trace, mode: "lines+markers", r: closed(there.map(one => one.point)), theta, line: { color: colour, width: 2 }, marker: { color: closed(there.map(one => (one.few ? "rgba(0,0,0,0)" : colour))), size: 7, line: { color: colour, width: 2 } },
        customdata: closed(there.map(one => [label, explorer.said(one)])), hovertemplate: "%{customdata[0]}, %{theta}<br>%{customdata[1]}<extra></extra>" },
      { ...trace, mode: "markers", showlegend: false, hoverinfo: "skip", r: cut.map(one => one.point), theta: cut.map(one => one.task), marker: { symbol: "circle-open", size: 15, color: explorer.theme().bad, line: { width: 2 } } },
    ];
  };

  explorer.view({
    name: "radar", title: "Spider", level: "breaks",
    hint: "Rate on each task with its 95 % interval as a band.",
    ready: overview => overview.tasks.length > 2,
    async render(root, page) {
      const models = (await explorer.shownModels(page, 3)).slice(0, MOST);
      const groups = await explorer.groups(page, ["model", "tier", "task"], { models });
      const tasks = groups.levels("task");
      const tiers = groups.levels("tier");
      const colours = explorer.palette(page.overview, models);
      const together = page.get("webs") === "one";
      const panel = (title, traces, trials) => h("div.panel", {}, h("h3", {}, title), traces.length ? explorer.chart({
        label: `Rates by task: ${title}`, height: 400, name: `spider-${title}`, traces,
        layout: { polar: { radialaxis: { range: [0, 1], tickformat: ".0%", angle: 90, tickangle: 90 }, angularaxis: { type: "category", categoryarray: tasks, direction: "clockwise" } }, margin: { l: 60, r: 60, t: 30, b: 30 }, legend: { orientation: "h", y: -0.12 } },
        click: point => { location.hash = explorer.trialsLink(page, { ...trials(explorer.unlabel(point.data.name)), task: explorer.unlabel(point.theta) }); },
      }) : h("p.empty", {}, "Nothing measured."));
      const place = label => groups.levels("model").indexOf(label);
      const byTier = tiers.map((tier, number) => panel(tier, models.filter(label => place(label) >= 0).flatMap(label => web(task => groups.at(place(label), number, task), tasks, label, colours.get(label))), label => ({ model: label, tier })));
      const byModel = models.filter(label => place(label) >= 0).map(label => panel(label, tiers.flatMap((tier, number) => web(task => groups.at(place(label), number, task), tasks, tier, explorer.colours[number % explorer.colours.length])), tier => ({ model: label, tier })));
      root.append(
        explorer.filters(page, { models: true }, explorer.choice(page, "webs", [["tier", "a web for each tier"], ["one", "a web for each model"]], "Webs"), explorer.rateSelect(page)),
        h("div.grid", {}, together ? byModel : byTier),
        h("p.legend", {}, h("span.key", {}, `Open mark: fewer than ${explorer.FEW} trials.`), h("span.key", {}, `Red ring: more than ${format.percent(explorer.CUT, 0)} truncated.`), h("span.key", {}, "A task without a mark was not measured in that tier.")),
        explorer.numbers(page, groups, models, ([tier, task]) => ({ tier, task })),
        explorer.noted(groups.answer, explorer.unmeasured(groups, models), page.overview.models.length > models.length ? `${models.length} of ${page.overview.models.length} models; choose others above.` : null));
    },
  });
}
