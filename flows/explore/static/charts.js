"use strict";
// Charts by plotly.js, in the page's own colours; texts of cubes are shown as they are and are never markup.
{
  const { h } = explorer;

  // plotly.js reads a little HTML in labels and hovers (<b>, <a href>), so that names from anywhere must be escaped.
  const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const MOST = 300;
  const MOST_LABELS = 10000;

  const originals = new Map();

  /** A foreign text as a label of a chart. */
  explorer.label = (text) => {
    const shown = explorer.visible(String(text).slice(0, MOST)).replace(/[&<>]/g, (character) => ESCAPES[character]);
    // plotly.js looks labels up in plain objects, where names such as "constructor" are found without being put in.
    const made = shown in {} ? `${shown}\u00a0` : shown;
    if (made === text) return made;
    originals.delete(made); // so that those of charts on the page are the last to go
    originals.set(made, text);
    if (originals.size > MOST_LABELS) originals.delete(originals.keys().next().value);
    return made;
  };

  /** Whether the page is as narrow as on a phone. */
  explorer.narrow = () => innerWidth < 640;

  // A legend cuts what is wider than the page at its end, where names differ.
  const LEGEND = 36;

  /** Names of series as the legend has room for them. */
  const legended = (traces) => {
    const short = explorer.shortened(
      traces.map((one) => one.name).filter((one) => typeof one === "string"),
      explorer.narrow() ? LEGEND : MOST,
    );
    return traces.map((one) => (short.has(one.name) ? { ...one, name: short.get(one.name), whole: one.name } : one));
  };

  /** What is shortened in a chart that is drawn, by what stands there: names in the legend and on axes. */
  const inFull = (place, traces, layout) => {
    const shown = new Set(
      [...place.querySelectorAll(".legend .legendtext")].map((text) => explorer.unlabel(text.dataset.unformatted)),
    );
    const axes = Object.values(layout).flatMap(
      (one) => (one?.angularaxis ? [one.angularaxis] : one?.ticktext ? [one] : []),
    );
    const pairs = [
      ...traces.filter((one) => shown.has(one.name)).map((one) => [one.name, one.whole]),
      ...axes.flatMap((axis) => (axis.ticktext || []).map((text, at) => [text, axis.tickvals[at]])),
    ];
    return new Map(pairs.filter(([short, whole]) => whole !== undefined && short !== whole));
  };

  /** Names in full below a chart, for those who have no pointer to hold over it. */
  const listed = (names) =>
    h(
      "details.names",
      {},
      h("summary", {}, "Names in full"),
      h("dl", {}, [...names].map(([short, whole]) => h("div", {}, h("dt", {}, short), h("dd", {}, whole)))),
    );

  /** Let entries of the legend say their names in full. */
  const titled = (place, names) => {
    for (const text of place.querySelectorAll(".legend .legendtext")) {
      const entry = text.closest(".traces");
      const whole = names.get(explorer.unlabel(text.dataset.unformatted));
      if (!whole || !entry || entry.querySelector("title")) continue;
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = explorer.visible(whole);
      entry.append(title);
    }
  };

  /** The text that a label of a chart was made of. */
  explorer.unlabel = (label) => originals.get(label) ?? label;

  /** The name of the series that a point of plotly.js belongs to. */
  explorer.series = (point) => explorer.unlabel(point.data.whole ?? point.data.name);

  // Templates are fixed texts of ours, with markup; everything else is shown as it is. Colours and names of types have
  // none of these characters.
  const OURS = new Set(["hovertemplate", "texttemplate"]);

  const escaped = (value, key) => {
    if (typeof value === "string") return OURS.has(key) ? value : explorer.label(value);
    if (Array.isArray(value)) return value.map((item) => escaped(item, key));
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escaped(item, name)]));
    }
    return value;
  };

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Colours of series, readable on light and dark, and by those who see fewer colours. */
  const COLOURS = [
    "#3b7dd8",
    "#e0812b",
    "#2f9e6e",
    "#c0507f",
    "#8f6ad2",
    "#b59a1c",
    "#1fa3b8",
    "#d2554a",
    "#7a8a3a",
    "#7d8590",
  ];
  explorer.colours = COLOURS;
  /** The colour of an evaluation, the same in every view. */
  explorer.colour = (overview, label) =>
    COLOURS[Math.max(0, overview.models.findIndex((one) => one.label === label)) % COLOURS.length];

  /** Colours of the page as it is now, for what a view draws itself. */
  explorer.theme = () => ({
    text: variable("--text"),
    faint: variable("--faint"),
    line: variable("--line"),
    paper: variable("--paper"),
    accent: variable("--accent"),
    good: variable("--good"),
    bad: variable("--bad"),
  });

  const FONT = "system-ui, sans-serif";
  const SIZE = 12;

  /** Pixels that the widest of some texts takes in a chart: of hundreds plotly.js takes long to find it out. */
  explorer.widest = (texts) => {
    const context = h("canvas").getContext("2d");
    context.font = `${SIZE}px ${FONT}`;
    return Math.ceil(Math.max(0, ...texts.map((text) => context.measureText(explorer.visible(text)).width)));
  };

  const lines = (theme) => ({ gridcolor: theme.line, linecolor: theme.line });

  const flatAxis = (theme, axis) => ({
    ...lines(theme),
    zerolinecolor: theme.line,
    tickcolor: theme.line,
    automargin: true,
    ...axis,
  });

  const sceneOf = (theme, scene) => {
    const axis = (name) => ({
      ...lines(theme),
      zerolinecolor: theme.line,
      color: theme.text,
      backgroundcolor: "rgba(0,0,0,0)",
      ...scene[name],
    });
    return { ...scene, xaxis: axis("xaxis"), yaxis: axis("yaxis"), zaxis: axis("zaxis") };
  };

  const polarOf = (theme, polar) => ({
    bgcolor: "rgba(0,0,0,0)",
    ...polar,
    radialaxis: { ...lines(theme), ...polar.radialaxis },
    angularaxis: { ...lines(theme), ...polar.angularaxis },
  });

  const styled = (layout) => {
    const theme = explorer.theme();
    const names = Object.keys(layout);
    const found = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: theme.text, family: FONT, size: SIZE },
      margin: { l: 50, r: 16, t: 16, b: 44 },
      hoverlabel: {
        bgcolor: theme.paper,
        bordercolor: theme.line,
        font: { color: theme.text },
        align: "left",
        namelength: 40,
      },
      legend: { orientation: "h", y: -0.2, font: { size: 11 } },
      colorway: COLOURS,
      ...layout,
    };
    const flat = new Set(["xaxis", "yaxis", ...names.filter((name) => /^[xy]axis\d*$/.test(name))]);
    for (const name of flat) found[name] = flatAxis(theme, layout[name]);
    for (const name of names.filter((name) => /^scene\d*$/.test(name))) found[name] = sceneOf(theme, layout[name]);
    for (const name of names.filter((name) => /^polar\d*$/.test(name))) found[name] = polarOf(theme, layout[name]);
    return found;
  };

  const BUTTONS = {
    displaylogo: false,
    responsive: true,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
  };

  /** Draw a chart in its place. */
  const plot = async (spec, place, figure) => {
    const layout = styled((typeof spec.layout === "function" ? spec.layout(place.clientWidth) : spec.layout) || {});
    const traces = legended(spec.traces);
    const drawing = Plotly.newPlot(place, traces.map((trace) => escaped(trace, "")), escaped(layout, ""), {
      ...BUTTONS,
      toImageButtonOptions: { filename: spec.name || "evalcube" },
    });
    // Not when all of it is drawn: marks are there to be clicked on before.
    if (spec.click) place.on("plotly_click", (event) => spec.click(event.points[0]));
    await drawing;
    const names = inFull(place, traces, layout);
    if (names.size) {
      figure.append(listed(names));
      titled(place, names);
      place.on("plotly_afterplot", () => titled(place, names));
    }
    place.dataset.drawn = "true";
    if (!place.isConnected) explorer.purge(figure);
  };

  const draw = async (spec, place, figure) => {
    try {
      await explorer.script("plotly.min.js");
    } catch {
      place.textContent = "plotly.js could not be loaded.";
      place.dataset.failed = "true";
      return;
    }
    if (place.isConnected) await plot(spec, place, figure);
  };

  const MOST_ROWS = 500;

  /** The points of a series, each as a list of its numbers or names. */
  const pointsOf = ({ x, y, z, r, theta, text }) => {
    if (z?.length && (Array.isArray(z[0]) || ArrayBuffer.isView(z[0]))) {
      return [...z].flatMap((line, j) => [...line].map((value, i) => [x?.[i] ?? i, y?.[j] ?? j, value]));
    }
    const parts = [Array.isArray(text) ? text : null, r ? theta : x, r || y, z].filter((part) => part?.length);
    return parts.length ? [...parts[0]].map((_, place) => parts.map((part) => part[place])) : [];
  };

  /** What a chart is drawn of, as a table for those who do not see it; made when it is opened. */
  const data = (spec) => {
    const fill = (event) => {
      const details = event.currentTarget;
      if (!details.open || details.querySelector("table")) return;
      const rows = spec.traces.filter((one) => one.hoverinfo !== "skip").flatMap((trace) =>
        pointsOf(trace).map((point) => [trace.name ?? "", ...point])
      );
      const shown = (value) => (typeof value === "number" ? explorer.format.number(value) : String(value ?? ""));
      const line = (row) => h("tr", {}, row.map((value) => h("td", {}, shown(value))));
      const table = h("table", {}, h("caption", {}, spec.label), h("tbody", {}, rows.slice(0, MOST_ROWS).map(line)));
      details.append(h("div.scroll", { tabindex: "0", role: "region", "aria-label": spec.label }, table));
      if (rows.length > MOST_ROWS) details.append(h("p.note", {}, `${MOST_ROWS} of ${rows.length} points.`));
    };
    return h("details.data", { ontoggle: fill }, h("summary", {}, "Data of the chart"));
  };

  /**
   * A chart, drawn as soon as it is on the page and as wide as its place.
   *
   * Texts in traces and layout are escaped. A `hovertemplate` is not: it must be a fixed text of ours, in which values
   * stand as %{text} or %{customdata[0]}, never as part of the template.
   *
   * @param {{traces: any[], layout?: any | ((width: number) => any), label: string, height?: number,
   *   click?: (point: any) => void, caption?: any, name?: string}} spec - `layout` may depend on the chart's width;
   *   `label` says what the chart shows, to those who cannot see it; `name` is that of a file that is saved; `click`
   *   gets a point of plotly.js
   */
  explorer.chart = (spec) => {
    const style = { height: `${spec.height || 380}px` };
    const place = h("div.plot", { style });
    const caption = spec.caption ? h("figcaption", {}, spec.caption) : null;
    const figure = h("figure", { "aria-label": spec.label }, place, caption, spec.traces.length ? data(spec) : null);
    const seen = new ResizeObserver((entries) => {
      if (!entries.some((entry) => entry.contentRect.width > 0)) return;
      seen.disconnect();
      draw(spec, place, figure);
    });
    seen.observe(place);
    return figure;
  };

  /** Give up what plotly.js holds of the charts in an element that is taken off the page. */
  explorer.purge = (root) => {
    if (typeof Plotly === "undefined") return;
    for (const place of root.querySelectorAll(".plot[data-drawn]")) Plotly.purge(place);
  };
}
