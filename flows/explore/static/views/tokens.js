"use strict";
// Tokens of replies: how many, when answers come, and how many of them are right.
{
  const { h, format } = explorer;
  const MOST = 8;
  /** Trials at risk below which a hazard is not drawn. */
  const LEAST = 10;
  const KINDS = [["right", "right", "#2f9e6e", ""], ["wrong", "wrong", "#c98a3f", "/"], [
    "censored",
    "truncated",
    "#b3372f",
    "\\",
  ]];
  const FORMS = [
    ["counts", "distribution", "How many trials ended in each bin of tokens"],
    [
      "hazard",
      "hazard",
      "Of the trials that are still at work, the share that ends in a bin with a right (or wrong) answer",
    ],
    [
      "incidence",
      "incidence",
      "Share of all trials that has ended with a right (or wrong) answer by then; truncated trials are censored",
    ],
    ["survival", "still at work", "Share of the trials that has not answered yet; truncated trials are censored"],
  ];

  const starts = (answer) => answer.tokens.map((last) => last - answer.width);
  const clear = (colour) => `${colour}26`;

  // A hazard is that of its bin, which ends at its number of tokens; the others hold from there on.
  const line = (whole, curves, name, colour, dash, shape = "hv") => {
    const last = shape === "vh" ? whole.at_risk.filter((count) => count >= LEAST).length : whole.at_risk.length;
    const answer = { ...whole, tokens: whole.tokens.slice(0, last), at_risk: whole.at_risk.slice(0, last) };
    const curve = Object.fromEntries(Object.entries(curves).map(([key, values]) => [key, values.slice(0, last)]));
    const few = answer.at_risk.map((count) => count < explorer.FEW);
    const base = {
      x: answer.tokens,
      type: "scatter",
      legendgroup: name,
      hoverinfo: "skip",
      showlegend: false,
      line: { width: 0, shape },
      mode: "lines",
    };
    return [
      { ...base, y: curve.upper },
      { ...base, y: curve.lower, fill: "tonexty", fillcolor: clear(colour) },
      {
        ...base,
        y: curve.value,
        name,
        showlegend: true,
        hoverinfo: "all",
        mode: "lines+markers",
        line: { width: 2, color: colour, dash, shape },
        marker: {
          size: 6,
          color: few.map((one) => (one ? "rgba(0,0,0,0)" : colour)),
          line: { color: colour, width: few.map((one) => (one ? 1.5 : 0)) },
        },
        customdata: answer.at_risk.map((
          count,
          place,
        ) => [
          name,
          format.percent(curve.value[place]),
          `${format.percent(curve.lower[place])} to ${format.percent(curve.upper[place])}`,
          format.number(count),
        ]),
        hovertemplate:
          "%{customdata[0]}, up to %{x} tokens<br>%{customdata[1]} (%{customdata[2]}), %{customdata[3]} trials at risk<extra></extra>",
      },
    ];
  };

  const distribution = (answer) =>
    KINDS.map(([key, name, colour, shape]) => ({
      type: "bar",
      name,
      x: starts(answer),
      y: answer.ends[key],
      offset: 0,
      width: answer.width,
      meta: key,
      marker: {
        color: colour,
        pattern: { shape, fillmode: "overlay", fgcolor: "rgba(255,255,255,0.6)", solidity: 0.2, size: 6 },
      },
      customdata: answer.tokens.map((
        last,
        place,
      ) => [last - answer.width + 1, last, format.number(answer.ends[key][place])]),
      hovertemplate:
        "%{customdata[0]} to %{customdata[1]} tokens<br>%{customdata[2]} trials<extra>%{fullData.name}</extra>",
    }));

  const limits = (answers) =>
    [...new Set(answers.map((one) => one.limit).filter((limit) => limit > 0))].filter((limit) =>
      answers.some((one) => one.tokens.length && one.tokens.at(-1) >= 0.6 * limit)
    ).map((limit) => ({
      type: "line",
      x0: limit,
      x1: limit,
      yref: "paper",
      y0: 0,
      y1: 1,
      line: { color: explorer.theme().bad, width: 1, dash: "dash" },
    }));

  explorer.view({
    name: "tokens",
    title: "Tokens",
    level: "breaks",
    hint: "Completion tokens of the trials: when answers come, right or wrong, and what was cut.",
    async render(root, page) {
      const models = (await explorer.shownModels(page, 4)).slice(0, MOST);
      const form = FORMS.some(([key]) => key === page.get("form")) ? page.get("form") : "counts";
      const width = page.get("width");
      const answers = await Promise.all(
        models.map((model) =>
          page.ask("hazard", { ...explorer.livePart(page), model, width: explorer.bundle ? null : width })
        ),
      );
      const causes = page.get("cause") === "wrong"
        ? ["wrong"]
        : page.get("cause") === "right"
        ? ["right"]
        : ["right", "wrong"];
      const end = Math.max(0, ...answers.map((one) => one.tokens.at(-1) || 0));
      const layout = (title) => ({
        xaxis: { title: { text: "completion tokens" }, range: [0, end] },
        yaxis: { title: { text: title }, rangemode: "tozero", ...(form === "counts" ? {} : { tickformat: ".0%" }) },
        shapes: limits(answers),
        legend: { orientation: "h", y: 1.02, yanchor: "bottom", traceorder: "normal" },
      });
      const go = (answer, status, place) => {
        location.hash = explorer.trialsLink(page, {
          model: answer.model,
          status,
          where: [...page.all("where"), `tokens=${answer.tokens[place] - answer.width + 1}..${answer.tokens[place]}`],
        });
      };
      const known = answers.filter((one) => one.tokens.length);
      const STATUS = { right: "correct", wrong: "incorrect", censored: "truncated" };
      root.append(
        explorer.filters(
          page,
          explorer.liveFilters(),
          explorer.choice(page, "form", FORMS, "Form"),
          form === "hazard" || form === "incidence"
            ? explorer.select(
              page,
              "cause",
              [["", "right and wrong"], ["right", "right"], ["wrong", "wrong"]],
              "answers",
            )
            : null,
          explorer.bundle ? null : explorer.select(page, "width", [
            ["", "by itself"],
            ...[8, 32, 64, 256, 1024].map((value) => [String(value), `${value} tokens`]),
          ], "bins"),
        ),
      );
      if (!known.length) root.append(h("p.empty", {}, "No finished trial has its tokens counted."));
      else if (form === "counts") {
        root.append(
          h(
            "div.grid",
            {},
            known.map((answer) =>
              h(
                "div.panel",
                {},
                h("h3", {}, answer.model, " ", h("span.status", {}, counted(answer))),
                explorer.chart({
                  label: `Tokens of ${answer.model}: ${counted(answer)}`,
                  height: 300,
                  name: `tokens-${answer.model}`,
                  traces: distribution(answer),
                  layout: { ...layout("trials"), barmode: "stack", bargap: 0 },
                  click: (point) => go(answer, STATUS[point.data.meta], point.pointIndex),
                }),
              )
            ),
          ),
        );
      } else {
        const colours = explorer.palette(page.overview, models);
        const traces = known.flatMap((answer) => {
          const colour = colours.get(answer.model);
          if (form === "survival") {
            return line(
              answer,
              answer.survival,
              answer.model,
              colour,
              explorer.DASHES[models.indexOf(answer.model) % explorer.DASHES.length],
            );
          }
          return causes.flatMap((cause) =>
            line(
              answer,
              answer[form][cause],
              `${answer.model}, ${cause}`,
              colour,
              cause === "right" ? "solid" : "dot",
              form === "hazard" ? "vh" : "hv",
            ).map((trace) => ({ ...trace, meta: answer.model }))
          );
        });
        root.append(
          h(
            "div.panel",
            {},
            explorer.chart({
              label: FORMS.find(([key]) => key === form)[2],
              height: 460,
              name: form,
              traces,
              layout: layout(FORMS.find(([key]) => key === form)[1]),
              click: (point) => {
                const answer = known.find((one) => one.model === explorer.unlabel(point.data.meta || point.data.name));
                if (answer) go(answer, null, point.pointIndex);
              },
            }),
          ),
        );
      }
      const width0 = known[0]?.width;
      root.append(
        h(
          "p.legend",
          {},
          form === "counts" ? null : h(
            "span.key",
            {},
            `Band: 95 % interval. Open mark: fewer than ${explorer.FEW} trials left.${
              form === "hazard" ? ` With fewer than ${LEAST} left none is drawn.` : ""
            }`,
          ),
          width0 ? h("span.key", {}, `Bins of ${width0} tokens.`) : null,
          limits(known).length ? h("span.key", {}, "Dashed red: limit of tokens.") : null,
          h("span.key", {}, FORMS.find(([key]) => key === form)[2] + "."),
        ),
        explorer.noted(
          {},
          page.overview.models.length > models.length
            ? `${models.length} of ${page.overview.models.length} models, at most ${MOST}; choose others above.`
            : null,
        ),
      );
    },
  });

  const counted = (answer) => {
    const sums = KINDS.map(([key, name]) => [name, answer.ends[key].reduce((a, b) => a + b, 0)]);
    return sums.filter(([, count]) => count).map(([name, count]) => `${format.number(count)} ${name}`).join(", ");
  };
}
