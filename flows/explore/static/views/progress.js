"use strict";
// How a sweep goes: done, rate, what fails and why, what it waits for.
{
  const { h, format } = explorer;
  const KINDS = [
    ["done", "done", "#2f9e6e", ""],
    ["transport", "no reply", "#b3372f", "\\"],
    ["missing", "not asked yet", "#b9c0c9", "+"],
  ];

  /** Milliseconds between looks at a run that goes on. */
  const AGAIN = 4000;
  /** What the times of receipts must span for a curve, in seconds. */
  const SPAN = 60;

  const time = (seconds) => {
    if (!format.isNumber(seconds)) return format.absent;
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.round(seconds)} s`;
  };

  const limit = (limits) => {
    const shown = Object.entries(limits || {}).filter(([name]) => name !== "retries");
    const value = (one) => (one === "auto" ? one : format.number(one));
    return shown.map(([name, one]) => `${name.replaceAll("_", " ")} ${value(one)}`).join(", ") || format.absent;
  };

  const causes = (found) => {
    const most = Object.entries(found).sort((a, b) => b[1] - a[1]);
    return most.map(([cause, count]) => `${cause} ×${format.number(count)}`).join(", ");
  };

  // What a run says of itself

  const rates = ({ seconds, sent, prompt_tokens: prompt, completion_tokens: completion }) => {
    const rate = seconds > 0 ? (sent || 0) / seconds : null;
    if (!rate) return [];
    return [
      ["requests a second", format.number(rate, 1)],
      ["tokens a second", format.number((prompt + completion) / seconds, 0)],
    ];
  };

  const troubles = (live) => {
    const retried = Object.fromEntries(Object.entries(live.retries || {}).filter(([, count]) => count));
    const why = (one) => (typeof one === "object" ? JSON.stringify(one) : one);
    const waiting = Object.entries(live.waiting || {}).map(([name, one]) => `${name}: ${why(one)}`);
    return [
      Object.keys(retried).length ? ["tried again", causes(retried)] : null,
      waiting.length ? ["waiting for", waiting.join("; ")] : null,
      live.transport ? ["without a reply", format.number(live.transport)] : null,
    ];
  };

  const liveFacts = (live) => [
    ["graded so far", format.number(live.done)],
    ["in flight", format.number(live.in_flight)],
    ["requests sent", `${format.number(live.sent)} in ${time(live.seconds)}`],
    ["answered by the cache", format.number(live.cached)],
    ...rates(live),
    ...troubles(live),
  ];

  const spent = ({ usd, tokens }) =>
    [usd ? format.money(usd) : null, `${format.number(tokens)} tokens`].filter(Boolean).join(", ");

  const facts = (cube) => {
    const again = `${format.number(cube.damaged)}, which a run does again from the cache`;
    const found = [
      ["recorded", `${format.number(cube.done)} of ${format.number(cube.trials)} trials`],
      ...(cube.live ? liveFacts(cube.live) : []),
      cube.spent ? ["spent", spent(cube.spent)] : null,
      cube.damaged ? ["damaged regions", again] : null,
    ].filter(Boolean);
    const line = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
    return h("dl.run-facts", {}, found.map(line));
  };

  // Charts

  const barTrace = (models, [key, name, colour, shape]) => ({
    type: "bar",
    orientation: "h",
    name,
    y: models.map((one) => one.model),
    x: models.map((one) => (one.trials ? one[key] / one.trials : null)),
    marker: explorer.patterned(colour, shape),
    customdata: models.map((one) => [format.number(one[key]), format.number(one.trials)]),
    hovertemplate: "%{y}<br>%{customdata[0]} of %{customdata[1]} (%{x:.1%})<extra>%{fullData.name}</extra>",
  });

  const bars = ({ models }) => {
    const kinds = KINDS.filter(([key]) => key === "done" || models.some((one) => one[key]));
    return explorer.chart({
      label: "Trials by model",
      height: 110 + 24 * models.length,
      name: "progress",
      traces: kinds.map((kind) => barTrace(models, kind)),
      layout: {
        barmode: "stack",
        bargap: 0.25,
        xaxis: { tickformat: ".0%", range: [0, 1], ticklabeloverflow: "allow" },
        margin: { l: 50, r: 26, t: 16, b: 44 },
        yaxis: { ...explorer.named(models.map((one) => one.model)), autorange: "reversed" },
        legend: { orientation: "h", y: 1.01, yanchor: "bottom", traceorder: "normal" },
      },
      caption: "What is recorded; a run records whole blocks, so that it has graded more.",
    });
  };

  /** Trials on record over time; nothing where there is hardly any. */
  const curve = ({ recorded: { at, trials } }) => {
    if (at.length < 3 || at.at(-1) - at[0] < SPAN) return "";
    const trace = {
      type: "scatter",
      mode: "lines",
      line: { shape: "hv", color: explorer.theme().accent },
      x: at.map((seconds) => new Date(1000 * seconds).toISOString()),
      y: trials,
      customdata: trials.map((count) => format.number(count)),
      hovertemplate: "%{x}<br>%{customdata} trials<extra></extra>",
    };
    const chart = explorer.chart({
      label: "Trials on record over time",
      height: 260,
      name: "recorded",
      traces: [trace],
      layout: { xaxis: { type: "date" }, yaxis: { rangemode: "tozero" } },
      caption: "UTC, by the times of the newest receipts: regions that were written again count when they were.",
    });
    return h("div.panel", {}, h("h2", {}, "Recorded over time"), chart);
  };

  // Models

  const failing = (page, { models }) => {
    const shown = models.filter((one) => one.transport || Object.keys(one.causes).length);
    if (!shown.length) return "";
    const line = ({ model, transport, causes: why }) => {
      const link = explorer.trialsOf(page, { model, status: "transport" }, model);
      return h("li", {}, link, `: ${format.number(transport)}`, Object.keys(why).length ? ` (${causes(why)})` : "");
    };
    return h(
      "div.panel.failing",
      {},
      h("h2", {}, "Without a reply"),
      h("ul", {}, shown.map(line)),
      h("p.note", {}, "The next run asks these again."),
    );
  };

  const table = (page, cube) => {
    const column = (key, title) => ({ key, title, value: (row) => row[key] });
    const columns = [
      { ...column("model", "model"), left: true },
      column("done", "done"),
      column("trials", "planned"),
      column("transport", "no reply"),
      column("missing", "not asked yet"),
      { key: "causes", title: "causes", left: true, value: (row) => causes(row.causes) },
      { key: "limits", title: "limits", left: true, value: (row) => limit(cube.limits[row.model]) },
    ];
    return explorer.table(page, { name: "progress", prefix: "progress-", rows: cube.models, columns });
  };

  const head = ({ cube, running, complete }) => {
    const resting = complete ? "complete" : "no run is working on it now; run it again to continue";
    return h("h2", {}, cube, " ", running ? h("span.live", {}, running) : h("span.status", {}, resting));
  };

  explorer.view({
    name: "progress",
    title: "Progress",
    level: "breaks",
    hint: "How far the sweep is, what fails and why, and what it waits for.",
    async render(root, page) {
      const { cubes } = await page.ask("progress", {}, { fresh: !explorer.bundle });
      for (const cube of cubes) {
        const panel = h("div.panel", {}, bars(cube));
        root.append(head(cube), facts(cube), panel, curve(cube), failing(page, cube), table(page, cube));
      }
      // What a run says of itself changes sooner than anything is recorded.
      const again = () => root.isConnected && !document.hidden && explorer.draw();
      if (!explorer.bundle && cubes.some((cube) => cube.running)) setTimeout(again, AGAIN);
    },
  });
}
