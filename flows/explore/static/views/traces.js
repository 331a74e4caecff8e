"use strict";
// How reasoning compresses: traces that repeat themselves compress further than others of their length.
{
  const { h, format } = explorer;
  const MOST = 6;
  /** Outcomes: name, colour, mark. */
  const KINDS = {
    correct: ["right", "#2f9e6e", "circle"],
    incorrect: ["wrong", "#c98a3f", "diamond"],
    invalid: ["no answer read", "#8f6ad2", "square"],
    refused: ["refused", "#c0507f", "cross"],
    truncated: ["truncated", "#b3372f", "x"],
  };
  const HOVER = "%{customdata[1]}, trial %{customdata[2]}<br>" +
    "%{x} tokens, %{y} bytes of %{customdata[3]} (%{customdata[4]})<extra>%{fullData.name}</extra>";

  /** The points of an outcome; the first of their data is the place in the sample. */
  const trace = ({ sample, points }, status) => {
    const [name, color, symbol] = KINDS[status];
    const mine = [...sample.status.keys()].filter((place) => sample.status[place] === status);
    const said = (place) => {
      const [bytes, compressed] = [sample.reasoning_bytes[place], sample.compressed_bytes[place]];
      const { task } = points[sample.point[place]];
      return [place, task, sample.trial[place], format.number(bytes), format.percent(compressed / bytes)];
    };
    return {
      type: "scatter",
      mode: "markers",
      name,
      x: mine.map((place) => sample.tokens[place]),
      y: mine.map((place) => sample.compressed_bytes[place]),
      marker: { color, symbol, size: 7, opacity: 0.65 },
      customdata: mine.map(said),
      hovertemplate: HOVER,
    };
  };

  const tracesOf = (answer) => {
    const there = Object.keys(KINDS).filter((status) => answer.sample.status.includes(status));
    return there.map((status) => trace(answer, status));
  };

  const counted = ({ sample, traces }) => {
    const all = format.number(traces);
    if (sample.trial.length < traces) return `${format.number(sample.trial.length)} of ${all} traces, evenly picked`;
    return `${all} traces${traces < explorer.FEW ? ": few" : ""}`;
  };

  const openTrial = ({ model, points, sample }, place) => {
    const at = points[sample.point[place]];
    location.hash = explorer.href("trial", {
      evaluation: model,
      asked: at.task,
      point: at.params,
      trial: sample.trial[place],
      repeat: sample.repeat[place] || null,
    });
  };

  const panel = (answer, layout) => {
    const chart = explorer.chart({
      label: `Compressed bytes against tokens of ${answer.model}`,
      height: 360,
      name: `compression-${answer.model}`,
      traces: tracesOf(answer),
      layout,
      click: (point) => openTrial(answer, point.customdata[0]),
    });
    return h("div.panel", {}, explorer.heading(answer.model, counted(answer)), chart);
  };

  /** The layout that all panels share, so that they can be compared. */
  const layoutOf = (answers) => {
    const most = (name) => 1.04 * Math.max(...answers.flatMap((one) => one.sample[name]), 1);
    return {
      xaxis: { title: { text: "completion tokens" }, range: [0, most("tokens")] },
      yaxis: { title: { text: "bytes, compressed" }, range: [0, most("compressed_bytes")] },
      legend: explorer.LEGEND,
    };
  };

  /** A column of a mean, with its interval where there is one. */
  const mean = (key, title, text) => ({
    key,
    title,
    value: (row) => row[key],
    show: (row) => {
      const [lower, upper] = [row[`${key}_lower`], row[`${key}_upper`]];
      return text(row[key]) + (format.isNumber(lower) ? ` (${text(lower)} to ${text(upper)})` : "");
    },
  });

  const twoDigits = (value) => format.number(value, 2);

  const COLUMNS = [
    { key: "model", title: "model", left: true, value: (row) => row.model },
    { key: "outcome", title: "outcome", left: true, value: (row) => (KINDS[row.outcome] || [row.outcome])[0] },
    { key: "traces", title: "traces", value: (row) => row.traces },
    mean("ratio", "compressed to", (value) => format.percent(value)),
    mean("bytes_per_token", "bytes per token", twoDigits),
    mean("compressed_per_token", "compressed per token", twoDigits),
  ];

  const nothing = (models) => [
    h("p.empty", {}, `No trace of reasoning is recorded of ${models.join(", ")}.`),
    explorer.noted(
      {},
      "Models that keep their reasoning to themselves, or do none, have nothing to compress; choose others above.",
    ),
  ];

  explorer.view({
    name: "traces",
    title: "Compression",
    level: "breaks",
    hint: "Bytes of the reasoning after compression, against tokens: a trace that goes in circles lies low. " +
      "A click leads to the trial.",
    async render(root, page) {
      const models = (await explorer.shownModels(page, 4)).slice(0, MOST);
      const ask = (model) => page.ask("traces", { ...explorer.livePart(page), model });
      const known = (await Promise.all(models.map(ask))).filter((one) => one.traces);
      root.append(explorer.filters(page, explorer.liveFilters()));
      if (!known.length) {
        root.append(...nothing(models));
        return;
      }
      const silent = models.filter((label) => !known.some((one) => one.model === label));
      const without = silent.length ? `Without reasoning on record: ${silent.join(", ")}.` : null;
      const layout = layoutOf(known);
      root.append(
        h("div.grid", {}, known.map((answer) => panel(answer, layout))),
        explorer.table(page, { name: "compression", rows: known.flatMap((one) => one.rows), columns: COLUMNS }),
        explorer.noted({}, without, explorer.limited(page, models, MOST)),
      );
    },
  });
}
