"use strict";
// Tokens of replies: how many, when answers come, and how many of them are right.
{
  const { h, format } = explorer;
  const MOST = 8;
  /** Trials at risk below which a hazard is not drawn. */
  const LEAST = 10;
  /** How trials end: key, name, colour, pattern, and the status of such trials. */
  const KINDS = [
    ["right", "right", "#2f9e6e", "", "correct"],
    ["wrong", "wrong", "#c98a3f", "/", "incorrect"],
    ["censored", "truncated", "#b3372f", "\\", "truncated"],
  ];
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
    [
      "budget",
      "budget",
      "Share of right answers if this had been the limit of tokens: the line is sure, " +
      "the band reaches up to what cut trials could add",
    ],
    ["survival", "still at work", "Share of the trials that has not answered yet; truncated trials are censored"],
  ];
  const CAUSES = [["", "right and wrong"], ["right", "right"], ["wrong", "wrong"]];
  const WIDTHS = [["", "by itself"], ...[8, 32, 64, 256, 1024].map((value) => [String(value), `${value} tokens`])];
  const HOVER = "%{customdata[0]}, up to %{x} tokens<br>%{customdata[1]} (%{customdata[2]}), " +
    "%{customdata[3]} trials at risk<extra></extra>";

  /** Trials at risk that a bin has which is drawn. */
  const leastOf = (form) => (form === "hazard" ? LEAST : 1);

  /** How many bins are drawn, from the first one on. */
  const drawn = (answer, least) => answer.at_risk.filter((count) => count >= least).length;

  /** The tokens up to which bins are drawn. */
  const endOf = (answer, form) => answer.tokens[drawn(answer, leastOf(form)) - 1] || 0;

  const formOf = (page) => FORMS.find(([key]) => key === page.get("form")) || FORMS[0];

  const counted = (answer) => {
    const sums = KINDS.map(([key, name]) => [name, answer.ends[key].reduce((a, b) => a + b, 0)]);
    return sums.filter(([, count]) => count).map(([name, count]) => `${format.number(count)} ${name}`).join(", ");
  };

  // Traces

  const clear = (colour) => `${colour}26`;

  /** A curve with its band up to the bin from which too few are left. */
  const cutOff = (answer, curve, least) => {
    const last = drawn(answer, least);
    const ends = Object.fromEntries(Object.entries(curve).map(([key, values]) => [key, values.slice(0, last)]));
    return { x: answer.tokens.slice(0, last), atRisk: answer.at_risk.slice(0, last), ...ends };
  };

  const bandTraces = ({ x, lower, upper }, name, colour, shape) => {
    const edge = {
      x,
      type: "scatter",
      legendgroup: name,
      hoverinfo: "skip",
      showlegend: false,
      line: { width: 0, shape },
      mode: "lines",
    };
    return [{ ...edge, y: upper }, { ...edge, y: lower, fill: "tonexty", fillcolor: clear(colour) }];
  };

  const curveTrace = ({ x, value, lower, upper, atRisk }, name, colour, line) => {
    const few = atRisk.map((count) => count < explorer.FEW);
    const ends = (place) => `${format.percent(lower[place])} to ${format.percent(upper[place])}`;
    return {
      x,
      type: "scatter",
      legendgroup: name,
      y: value,
      name,
      showlegend: true,
      hoverinfo: "all",
      mode: "lines+markers",
      line: { width: 2, color: colour, ...line },
      marker: {
        size: 6,
        color: few.map((one) => (one ? "rgba(0,0,0,0)" : colour)),
        line: { color: colour, width: few.map((one) => (one ? 1.5 : 0)) },
      },
      customdata: atRisk.map((count, place) => [name, format.percent(value[place]), ends(place), format.number(count)]),
      hovertemplate: HOVER,
    };
  };

  /** A curve with its band; `meta` is the model, which a click leads to. */
  const lineTraces = (answer, curve, { name, colour, dash, least = 1, shape = "hv" }) => {
    const shown = cutOff(answer, curve, least);
    const traces = [...bandTraces(shown, name, colour, shape), curveTrace(shown, name, colour, { dash, shape })];
    return traces.map((trace) => ({ ...trace, meta: answer.model }));
  };

  const causesOf = (
    page,
  ) => (["right", "wrong"].includes(page.get("cause")) ? [page.get("cause")] : ["right", "wrong"]);

  const tracesOf = (page, form, answers, models) => {
    const colours = explorer.palette(page.overview, models);
    return answers.flatMap((answer) => {
      const colour = colours.get(answer.model);
      if (["survival", "budget"].includes(form)) {
        const dash = explorer.DASHES[models.indexOf(answer.model) % explorer.DASHES.length];
        return lineTraces(answer, answer[form], { name: answer.model, colour, dash });
      }
      // A hazard is that of its bin, which ends at its number of tokens; the others hold from there on.
      const how = form === "hazard" ? { least: LEAST, shape: "vh" } : {};
      return causesOf(page).flatMap((cause) => {
        const dash = cause === "right" ? "solid" : "dot";
        return lineTraces(answer, answer[form][cause], { name: `${answer.model}, ${cause}`, colour, dash, ...how });
      });
    });
  };

  const distribution = ({ tokens, width, ends }) =>
    KINDS.map(([key, name, colour, shape, status]) => ({
      type: "bar",
      name,
      x: tokens.map((last) => last - width),
      y: ends[key],
      offset: 0,
      width,
      meta: status,
      marker: explorer.patterned(colour, shape, 6),
      customdata: tokens.map((last, place) => [last - width + 1, last, format.number(ends[key][place])]),
      hovertemplate: "%{customdata[0]} to %{customdata[1]} tokens<br>%{customdata[2]} trials" +
        "<extra>%{fullData.name}</extra>",
    }));

  /** Lines at the limits of tokens that any trials come near to. */
  const limits = (answers, form) => {
    const near = (limit) => answers.some((one) => endOf(one, form) >= 0.6 * limit);
    const found = [...new Set(answers.map((one) => one.limit))].filter((limit) => limit > 0 && near(limit));
    const line = { color: explorer.theme().bad, width: 1, dash: "dash" };
    return found.map((limit) => ({ type: "line", x0: limit, x1: limit, yref: "paper", y0: 0, y1: 1, line }));
  };

  // The view

  const layoutOf = (answers, [form, title], more) => {
    const end = Math.max(0, ...answers.map((one) => endOf(one, form)));
    return {
      xaxis: { title: { text: "completion tokens" }, range: [0, end] },
      yaxis: { title: { text: title }, rangemode: "tozero", ...more },
      shapes: limits(answers, form),
      legend: { ...explorer.LEGEND, traceorder: "normal" },
    };
  };

  /** Go to the trials of a bin. */
  const open = (page, { model, tokens, width }, status, place) => {
    const bin = `tokens=${tokens[place] - width + 1}..${tokens[place]}`;
    explorer.openTrials(page, { model, status, where: [...page.all("where"), bin] });
  };

  const countPanel = (page, answer, layout) => {
    const chart = explorer.chart({
      label: `Tokens of ${answer.model}: ${counted(answer)}`,
      height: 300,
      name: `tokens-${answer.model}`,
      traces: distribution(answer),
      layout: { ...layout, barmode: "stack", bargap: 0 },
      click: (point) => open(page, answer, point.data.meta, point.pointIndex),
    });
    return h("div.panel", {}, explorer.heading(answer.model, counted(answer)), chart);
  };

  const curvesPanel = (page, known, models, layout) => {
    const [form, , meaning] = formOf(page);
    const chart = explorer.chart({
      label: meaning,
      height: 460,
      name: form,
      traces: tracesOf(page, form, known, models),
      layout,
      click: (point) => {
        const answer = known.find((one) => one.model === explorer.unlabel(point.data.meta));
        if (answer) open(page, answer, null, point.pointIndex);
      },
    });
    return h("div.panel", {}, chart);
  };

  const shown = (page, answers, known, models) => {
    const form = formOf(page);
    if (!known.length) return h("p.empty", {}, "No finished trial has its tokens counted.");
    if (form[0] !== "counts") return curvesPanel(page, known, models, layoutOf(answers, form, { tickformat: ".0%" }));
    return h("div.grid", {}, known.map((answer) => countPanel(page, answer, layoutOf(answers, ["counts", "trials"]))));
  };

  const controls = (page) => {
    const [form] = formOf(page);
    const byCause = form === "hazard" || form === "incidence";
    return explorer.filters(
      page,
      explorer.liveFilters(),
      explorer.choice(page, "form", FORMS, "Form"),
      byCause ? explorer.select(page, "cause", CAUSES, "answers") : null,
      explorer.bundle ? null : explorer.select(page, "width", WIDTHS, "bins"),
    );
  };

  const legend = (page, known) => {
    const [form, , meaning] = formOf(page);
    const least = form === "hazard" ? ` With fewer than ${LEAST} left none is drawn.` : "";
    const keys = [
      form === "counts" ? null : `Band: 95% interval. Open mark: fewer than ${explorer.FEW} trials left.${least}`,
      known.length ? `Bins of ${known[0].width} tokens.` : null,
      limits(known, form).length ? "Dashed red: limit of tokens." : null,
      `${meaning}.`,
    ];
    return h("p.legend", {}, keys.filter(Boolean).map((text) => h("span.key", {}, text)));
  };

  explorer.view({
    name: "tokens",
    title: "Tokens",
    level: "breaks",
    hint: "Completion tokens of the trials: when answers come, right or wrong, and what was cut.",
    async render(root, page) {
      const models = (await explorer.shownModels(page, 4)).slice(0, MOST);
      const width = explorer.bundle ? null : page.get("width");
      const ask = (model) => page.ask("hazard", { ...explorer.livePart(page), model, width });
      const answers = await Promise.all(models.map(ask));
      const known = answers.filter((one) => one.tokens.length);
      root.append(
        controls(page),
        shown(page, answers, known, models),
        legend(page, known),
        explorer.noted({}, explorer.limited(page, models, MOST)),
      );
    },
  });
}
