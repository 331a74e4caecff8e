"use strict";
// How a sweep goes: done, rate, what fails and why, what it waits for.
{
  const { h, format } = explorer;
  const KINDS = [["done", "done", "#2f9e6e", ""], ["transport", "no reply", "#b3372f", "\\"], [
    "missing",
    "not asked yet",
    "#b9c0c9",
    "+",
  ]];

  /** Milliseconds between looks at a run that goes on. */
  const AGAIN = 4000;

  const time = (seconds) => {
    if (!format.isNumber(seconds)) return format.absent;
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
    return hours
      ? `${hours} h ${minutes} min`
      : minutes
      ? `${minutes} min ${Math.round(seconds % 60)} s`
      : `${Math.round(seconds)} s`;
  };
  const limit = (limits) =>
    Object.entries(limits || {}).filter(([name]) => name !== "retries").map(([name, value]) =>
      `${name.replaceAll("_", " ")} ${value === "auto" ? value : format.number(value)}`
    ).join(", ") || format.absent;
  const causes = (found) =>
    Object.entries(found).sort((a, b) => b[1] - a[1]).map(([cause, count]) => `${cause} ×${format.number(count)}`).join(
      ", ",
    );

  const facts = (cube) => {
    const live = cube.live;
    const found = [["recorded", `${format.number(cube.done)} of ${format.number(cube.trials)} trials`]];
    if (live) {
      const rate = live.seconds > 0 ? (live.sent || 0) / live.seconds : null;
      found.push(["graded so far", format.number(live.done)], ["in flight", format.number(live.in_flight)], [
        "requests sent",
        `${format.number(live.sent)} in ${time(live.seconds)}`,
      ], ["answered by the cache", format.number(live.cached)]);
      if (rate) {
        found.push(["requests a second", format.number(rate, 1)], [
          "tokens a second",
          format.number((live.prompt_tokens + live.completion_tokens) / live.seconds, 0),
        ]);
      }
      const retried = Object.entries(live.retries || {}).filter(([, count]) => count);
      if (retried.length) found.push(["tried again", causes(Object.fromEntries(retried))]);
      const waiting = Object.entries(live.waiting || {});
      if (waiting.length) {
        found.push([
          "waiting for",
          waiting.map(([name, why]) => `${name}: ${typeof why === "object" ? JSON.stringify(why) : why}`).join("; "),
        ]);
      }
      if (live.transport) found.push(["without a reply", format.number(live.transport)]);
    }
    if (cube.spent) {
      found.push([
        "spent",
        [cube.spent.usd ? format.money(cube.spent.usd) : null, `${format.number(cube.spent.tokens)} tokens`].filter(
          Boolean,
        ).join(", "),
      ]);
    }
    if (cube.damaged) {
      found.push(["damaged regions", `${format.number(cube.damaged)}, which a run does again from the cache`]);
    }
    return h("dl.run-facts", {}, found.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  };

  const bars = (cube) => {
    const names = cube.models.map((one) => one.model);
    return explorer.chart({
      label: "Trials by model",
      height: 110 + 24 * names.length,
      name: "progress",
      traces: KINDS.filter(([key]) => key === "done" || cube.models.some((one) => one[key])).map((
        [key, name, colour, shape],
      ) => ({
        type: "bar",
        orientation: "h",
        name,
        y: names,
        x: cube.models.map((one) => (one.trials ? one[key] / one.trials : null)),
        marker: {
          color: colour,
          pattern: { shape, fillmode: "overlay", fgcolor: "rgba(255,255,255,0.6)", solidity: 0.2, size: 7 },
        },
        customdata: cube.models.map((one) => [format.number(one[key]), format.number(one.trials)]),
        hovertemplate: "%{y}<br>%{customdata[0]} of %{customdata[1]} (%{x:.1%})<extra>%{fullData.name}</extra>",
      })),
      layout: {
        barmode: "stack",
        bargap: 0.25,
        xaxis: { tickformat: ".0%", range: [0, 1], ticklabeloverflow: "allow" },
        margin: { l: 50, r: 26, t: 16, b: 44 },
        yaxis: { ...explorer.named(names), autorange: "reversed" },
        legend: { orientation: "h", y: 1.01, yanchor: "bottom", traceorder: "normal" },
      },
      caption: "What is recorded; a run records whole blocks, so that it has graded more.",
    });
  };

  const curve = (cube) => (cube.recorded.at.length < 3 || cube.recorded.at.at(-1) - cube.recorded.at[0] < 60 ? null : h(
    "div.panel",
    {},
    h("h3", {}, "Recorded over time"),
    explorer.chart({
      label: "Trials on record over time",
      height: 260,
      name: "recorded",
      traces: [{
        type: "scatter",
        mode: "lines",
        line: { shape: "hv", color: explorer.theme().accent },
        x: cube.recorded.at.map((at) => new Date(1000 * at).toISOString()),
        y: cube.recorded.trials,
        customdata: cube.recorded.trials.map((count) => format.number(count)),
        hovertemplate: "%{x}<br>%{customdata} trials<extra></extra>",
      }],
      layout: { xaxis: { type: "date" }, yaxis: { rangemode: "tozero" } },
      caption: "UTC, by the times of the newest receipts: regions that were written again count when they were.",
    }),
  ));

  explorer.view({
    name: "progress",
    title: "Progress",
    level: "breaks",
    hint: "How far the sweep is, what fails and why, and what it waits for.",
    async render(root, page) {
      const answer = await page.ask("progress", {}, { fresh: !explorer.bundle });
      for (const cube of answer.cubes) {
        const failing = cube.models.filter((one) => one.transport || Object.keys(one.causes).length);
        root.append(
          h(
            "h2",
            {},
            cube.cube,
            " ",
            cube.running
              ? h("span.live", {}, cube.running)
              : h("span.status", {}, cube.complete ? "complete" : "nobody works on it now; run it again to go on"),
          ),
          facts(cube),
          h("div.panel", {}, bars(cube)),
          curve(cube) || document.createDocumentFragment(),
          failing.length
            ? h(
              "div.panel.failing",
              {},
              h("h3", {}, "Without a reply"),
              h(
                "ul",
                {},
                failing.map((one) =>
                  h(
                    "li",
                    {},
                    h("a", { href: explorer.trialsLink(page, { model: one.model, status: "transport" }) }, one.model),
                    `: ${format.number(one.transport)}`,
                    Object.keys(one.causes).length ? ` (${causes(one.causes)})` : "",
                  )
                ),
              ),
              h("p.note", {}, "The next run asks these again."),
            )
            : document.createDocumentFragment(),
          explorer.table(page, {
            name: "progress",
            prefix: "progress-",
            rows: cube.models,
            columns: [
              { key: "model", title: "model", left: true, value: (row) => row.model },
              { key: "done", title: "done", value: (row) => row.done },
              { key: "trials", title: "planned", value: (row) => row.trials },
              { key: "transport", title: "no reply", value: (row) => row.transport },
              { key: "missing", title: "not asked yet", value: (row) => row.missing },
              { key: "causes", title: "causes", left: true, value: (row) => causes(row.causes) },
              { key: "limits", title: "limits", left: true, value: (row) => limit(cube.limits[row.model]) },
            ],
          }),
        );
      }
      // What a run says of itself changes sooner than anything is recorded.
      if (!explorer.bundle && answer.cubes.some((cube) => cube.running)) {
        setTimeout(() => {
          if (root.isConnected && !document.hidden) explorer.draw();
        }, AGAIN);
      }
    },
  });
}
