"use strict";
// How reasoning compresses: traces that repeat themselves compress further than others of their length.
{
  const { h, format } = explorer;
  const MOST = 6;
  const KINDS = {
    correct: ["right", "#2f9e6e", "circle"],
    incorrect: ["wrong", "#c98a3f", "diamond"],
    invalid: ["no answer read", "#8f6ad2", "square"],
    refused: ["refused", "#c0507f", "cross"],
    truncated: ["truncated", "#b3372f", "x"],
  };

  const scatter = (answer) =>
    Object.entries(KINDS).map(([status, [name, colour, symbol]]) => {
      const { sample, points } = answer;
      const mine = sample.status.map((one, place) => place).filter((place) => sample.status[place] === status);
      if (!mine.length) return null;
      return {
        type: "scatter",
        mode: "markers",
        name,
        x: mine.map((place) => sample.tokens[place]),
        y: mine.map((place) => sample.compressed_bytes[place]),
        marker: { color: colour, symbol, size: 7, opacity: 0.65 },
        meta: status,
        customdata: mine.map(
          (place) => [
            place,
            points[sample.point[place]].task,
            sample.trial[place],
            format.number(sample.reasoning_bytes[place]),
            format.percent(sample.compressed_bytes[place] / sample.reasoning_bytes[place]),
          ],
        ),
        hovertemplate:
          "%{customdata[1]}, trial %{customdata[2]}<br>%{x} tokens, %{y} bytes of %{customdata[3]} (%{customdata[4]})<extra>%{fullData.name}</extra>",
      };
    }).filter(Boolean);

  const share = (key, title, digits) => ({
    key,
    title,
    value: (row) => row[key],
    show: (
      row,
    ) => (!format.isNumber(row[`${key}_lower`])
      ? (digits === undefined ? format.percent(row[key]) : format.number(row[key], digits))
      : digits === undefined
      ? `${format.percent(row[key])} (${format.percent(row[`${key}_lower`])} to ${format.percent(row[`${key}_upper`])})`
      : `${format.number(row[key], digits)} (${format.number(row[`${key}_lower`], digits)} to ${
        format.number(row[`${key}_upper`], digits)
      })`),
  });

  explorer.view({
    name: "traces",
    title: "Compression",
    level: "breaks",
    hint:
      "Bytes of the reasoning after compression, against tokens: a trace that goes in circles lies low. A click leads to the trial.",
    async render(root, page) {
      const models = (await explorer.shownModels(page, 4)).slice(0, MOST);
      const answers = await Promise.all(
        models.map((model) => page.ask("traces", { ...explorer.livePart(page), model })),
      );
      const known = answers.filter((one) => one.traces);
      root.append(explorer.filters(page, explorer.liveFilters()));
      if (!known.length) {
        root.append(
          h("p.empty", {}, `No trace of reasoning is recorded of ${models.join(", ")}.`),
          explorer.noted(
            {},
            "Models that keep their reasoning to themselves, or do none, have nothing to compress; choose others above.",
          ),
        );
        return;
      }
      const most = (name) => 1.04 * Math.max(...known.flatMap((one) => one.sample[name]), 1);
      const range = { x: [0, most("tokens")], y: [0, most("compressed_bytes")] };
      root.append(
        h(
          "div.grid",
          {},
          known.map((answer) =>
            h(
              "div.panel",
              {},
              h(
                "h3",
                {},
                answer.model,
                " ",
                h(
                  "span.status",
                  {},
                  answer.sample.trial.length < answer.traces
                    ? `${format.number(answer.sample.trial.length)} of ${
                      format.number(answer.traces)
                    } traces, evenly picked`
                    : `${format.number(answer.traces)} traces${answer.traces < explorer.FEW ? ": few" : ""}`,
                ),
              ),
              explorer.chart({
                label: `Compressed bytes against tokens of ${answer.model}`,
                height: 360,
                name: `compression-${answer.model}`,
                traces: scatter(answer),
                layout: {
                  xaxis: { title: { text: "completion tokens" }, range: range.x },
                  yaxis: { title: { text: "bytes, compressed" }, range: range.y },
                  legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
                },
                click: (point) => {
                  const place = point.customdata[0];
                  const at = answer.points[answer.sample.point[place]];
                  location.hash = explorer.href("trial", {
                    evaluation: answer.model,
                    asked: at.task,
                    point: at.params,
                    trial: answer.sample.trial[place],
                    repeat: answer.sample.repeat[place] || null,
                  });
                },
              }),
            )
          ),
        ),
        explorer.table(page, {
          name: "compression",
          rows: known.flatMap((one) => one.rows),
          columns: [
            { key: "model", title: "model", left: true, value: (row) => row.model },
            { key: "outcome", title: "outcome", left: true, value: (row) => (KINDS[row.outcome] || [row.outcome])[0] },
            { key: "traces", title: "traces", value: (row) => row.traces },
            share("ratio", "compressed to"),
            share("bytes_per_token", "bytes per token", 2),
            share("compressed_per_token", "compressed per token", 2),
          ],
        }),
        explorer.noted(
          {},
          known.length < models.length
            ? `Without reasoning on record: ${
              models.filter((label) => !known.some((one) => one.model === label)).join(", ")
            }.`
            : null,
          page.overview.models.length > models.length
            ? `${models.length} of ${page.overview.models.length} models, at most ${MOST}; choose others above.`
            : null,
        ),
      );
    },
  });
}
