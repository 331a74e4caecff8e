"use strict";
// Rate over two parameters of a task: in space with its lower bound as a shadow, or as a heat map, with projections.
{
  const { h, format } = explorer;
  const MOST = 4;
  const FORMS = [["space", "3-D"], ["heat", "heat map"]];
  const suits = (task) => explorer.varying(task).length > 1;

  // Cells of a model: one for each pair of levels

  const levelsOf = (groups) => groups.answer.levels.slice(1);

  /** What is read of each cell, as rows of the second parameter. */
  const grid = (groups, model, read) => {
    const [x, y] = levelsOf(groups);
    return y.map((_, j) => x.map((__, i) => read(groups.at(model, i, j))));
  };

  const cellsOf = (groups, model) => {
    const [x, y] = levelsOf(groups);
    return x.flatMap((a, i) => y.map((b, j) => ({ a, b, group: groups.at(model, i, j) })));
  };

  /** Whether four neighbouring cells are measured. */
  const hasBlock = (groups, model) => {
    const there = (i, j) => groups.at(model, i, j).measured;
    const block = (i, j) => there(i, j) && there(i + 1, j) && there(i, j + 1) && there(i + 1, j + 1);
    const [x, y] = levelsOf(groups).map((levels) => [...levels.keys()].slice(0, -1));
    return x.some((i) => y.some((j) => block(i, j)));
  };

  const summary = (groups, model) => {
    const found = cellsOf(groups, model).map((one) => one.group);
    const values = found.filter((one) => one.measured).map((one) => one.point);
    if (!values.length) return "nothing measured";
    const missing = found.filter((one) => one.planned && !one.measured).length;
    const few = found.filter((one) => one.few).length;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const [least, middle, most] = [Math.min(...values), mean, Math.max(...values)].map((one) => format.percent(one, 0));
    return `least ${least}, mean of ${values.length} cells ${middle}, most ${most}` +
      (few ? `; ${few} with fewer than ${explorer.FEW} trials` : "") +
      (missing ? `; ${missing} not measured` : "");
  };

  // In space

  const surfaceTrace = (groups, model, label, more) => {
    const [x, y] = levelsOf(groups);
    return { type: "surface", name: label, x, y, showscale: false, connectgaps: false, ...more };
  };

  /** The lower bound of the interval, as a shadow. */
  const shadowTrace = (groups, model, label) => {
    const { faint } = explorer.theme();
    return surfaceTrace(groups, model, label, {
      z: grid(groups, model, (one) => one.lower),
      opacity: 0.3,
      colorscale: [[0, faint], [1, faint]],
      hoverinfo: "skip",
    });
  };

  const rateTrace = (groups, model, label) => {
    const line = { show: true, color: explorer.theme().line, width: 1 };
    return surfaceTrace(groups, model, label, {
      z: grid(groups, model, (one) => one.point),
      cmin: 0,
      cmax: 1,
      colorscale: explorer.SCALE,
      opacity: 0.95,
      text: grid(groups, model, explorer.said),
      hovertemplate: "%{x}, %{y}<br>%{text}<extra></extra>",
      contours: { x: line, y: line },
    });
  };

  const markTrace = (cells, label, marker) => ({
    type: "scatter3d",
    mode: "markers",
    name: label,
    x: cells.map((one) => one.a),
    y: cells.map((one) => one.b),
    z: cells.map((one) => one.group.point),
    marker,
    customdata: cells.map((one) => explorer.said(one.group)),
    hovertemplate: "%{x}, %{y}<br>%{customdata}<extra></extra>",
    showlegend: false,
  });

  /** Lines up from the points of which many trials were truncated, as high as that share. */
  const towerTrace = (cells) => {
    const cut = cells.filter((one) => one.group.cut > explorer.CUT);
    const top = ({ point, cut: share }) => Math.min(1, point + share);
    return {
      type: "scatter3d",
      mode: "lines",
      hoverinfo: "skip",
      showlegend: false,
      line: { color: explorer.theme().bad, width: 5 },
      x: cut.flatMap((one) => [one.a, one.a, null]),
      y: cut.flatMap((one) => [one.b, one.b, null]),
      z: cut.flatMap((one) => [one.group.point, top(one.group), null]),
    };
  };

  const space = (groups, model, label) => {
    const theme = explorer.theme();
    const cells = cellsOf(groups, model).filter((one) => one.group.measured);
    const low = cells.filter((one) => one.group.lower <= 0.9);
    const high = cells.filter((one) => one.group.lower > 0.9);
    const [few, many] = [true, false].map((wanted) => low.filter((one) => one.group.few === wanted));
    return [
      shadowTrace(groups, model, label),
      rateTrace(groups, model, label),
      // Each cell has a mark: one without neighbours would not be seen in a surface.
      markTrace(many, label, { size: 2.5, color: theme.text, symbol: "circle" }),
      markTrace(few, label, { size: 5, color: theme.text, symbol: "circle-open" }),
      markTrace(high, label, { size: 5, color: theme.good, symbol: "diamond" }),
      towerTrace(cells),
    ];
  };

  const spaceLayout = (groups, titles) => {
    const axis = (place) => ({ title: { text: titles[place] }, tickvals: levelsOf(groups)[place] });
    return {
      margin: { l: 0, r: 0, t: 0, b: 0 },
      uirevision: "kept",
      scene: {
        xaxis: axis(0),
        yaxis: axis(1),
        zaxis: { title: { text: "rate" }, range: [0, 1], tickformat: ".0%" },
        aspectmode: "manual",
        aspectratio: { x: 1.2, y: 1.2, z: 0.8 },
        // The titles of the axes stand below the box, which is looked at from a little higher.
        camera: {
          center: { x: 0, y: 0, z: -0.15 },
          eye: explorer.narrow() ? { x: 2.5, y: -2.5, z: 1.4 } : { x: 1.7, y: -1.7, z: 0.9 },
        },
      },
    };
  };

  // As a heat map

  const heatTrace = (groups, model) => {
    const [x, y] = levelsOf(groups);
    return {
      type: "heatmap",
      x: x.map(String),
      y: y.map(String),
      z: grid(groups, model, (one) => one.point),
      zmin: 0,
      zmax: 1,
      colorscale: explorer.SCALE,
      xgap: 1,
      ygap: 1,
      hoverongaps: true,
      customdata: grid(groups, model, explorer.said),
      hovertemplate: "%{x}, %{y}<br>%{customdata}<extra></extra>",
      colorbar: { tickformat: ".0%", thickness: 10 },
    };
  };

  const pendingTrace = (cells) => ({
    type: "scatter",
    mode: "text",
    x: cells.map((one) => String(one.a)),
    y: cells.map((one) => String(one.b)),
    text: cells.map(() => "…"),
    textfont: { size: 18 },
    hovertemplate: "%{x}, %{y}<br>not measured yet<extra></extra>",
    showlegend: false,
  });

  const heat = (groups, model) => {
    const cells = cellsOf(groups, model);
    const marks = ({ cut, few }) => (cut > explorer.CUT ? " ✂" : "") + (few ? " ?" : "");
    const text = (group) => format.fixed(100 * group.point, 0) + marks(group);
    const measured = cells.filter((one) => one.group.measured);
    const texts = measured.map(({ a, b, group }) => (
      { x: String(a), y: String(b), share: group.point, text: text(group) }
    ));
    const pending = cells.filter((one) => one.group.planned && !one.group.measured);
    return [pendingTrace(pending), heatTrace(groups, model), explorer.cellTexts(texts)];
  };

  const heatLayout = (groups, titles) => {
    // All levels, measured or not.
    const axis = (place) => {
      const names = levelsOf(groups)[place].map(String);
      const range = [-0.5, names.length - 0.5];
      return {
        title: { text: titles[place] },
        type: "category",
        categoryorder: "array",
        categoryarray: names,
        range,
      };
    };
    return { xaxis: axis(0), yaxis: axis(1) };
  };

  // What the address means

  /** The two parameters that are chosen, and those that there are. */
  const axesOf = (page, task) => {
    const names = explorer.varying(task).map((one) => one.name);
    const x = names.includes(page.get("x")) ? page.get("x") : names[0];
    const others = names.filter((name) => name !== x);
    const y = others.includes(page.get("y")) ? page.get("y") : others[0];
    // As names stand in the task, so that a bundle needs each pair once.
    return { names, others, axes: [x, y], pair: names.filter((name) => name === x || name === y) };
  };

  /** What the address of a cell's trials says. */
  const where = (page, task, names, values) => {
    const conditions = names.map((name, place) => explorer.condition(name, values[place]));
    return { task: task.label, where: [...page.all("where"), ...conditions] };
  };

  const controls = (page, task, { names, others }) => {
    const options = (all) => all.map((name) => [name, format.plain(name)]);
    return explorer.filters(
      page,
      { models: true, tasks: false, tiers: !explorer.bundle },
      explorer.oneTask(page, task, suits),
      explorer.select(page, "x", options(names), "x"),
      explorer.select(page, "y", options(others), "y"),
      explorer.choice(page, "form", FORMS, "Form"),
      explorer.rateSelect(page),
    );
  };

  // Panels

  const SPACE_CAPTION = "Drag to turn. Grey: lower bound of the 95% interval. Green diamond: it is above 90%. " +
    `Open mark: fewer than ${explorer.FEW} trials. Red tower: share truncated. Hole: nothing measured.`;
  const HEAT_CAPTION = `✂ more than ${format.percent(explorer.CUT, 0)} truncated, ` +
    `? fewer than ${explorer.FEW} trials, … planned and not measured, empty: not planned.`;

  /** Why there is a heat map in the place of a surface; empty if there is none, null for a surface. */
  const whyFlat = (page, groups, model) => {
    if (page.get("form") === "heat") return "";
    if (!levelsOf(groups).flat().every(format.isNumber)) return "Only numbers span a surface. ";
    if (hasBlock(groups, model)) return null;
    return "No four neighbouring cells are measured, so that there is no surface. ";
  };

  const panel = (page, task, pair, groups, label) => {
    const model = groups.levels("model").indexOf(label);
    if (model < 0) return null;
    const said = summary(groups, model);
    const titles = pair.map(format.plain);
    const why = whyFlat(page, groups, model);
    const flat = why !== null;
    const chart = explorer.chart({
      label: `Rate of ${label} on ${task.label} over ${titles.join(" and ")}: ${said}`,
      height: flat ? 420 : explorer.narrow() ? 360 : 480,
      name: `surface-${task.label}-${label}`,
      traces: flat ? heat(groups, model) : space(groups, model, label),
      layout: flat ? heatLayout(groups, titles) : spaceLayout(groups, titles),
      click: (point) => {
        const values = [point.x, point.y].map(explorer.unlabel);
        explorer.openTrials(page, { model: label, ...where(page, task, pair, values) });
      },
      caption: flat ? why + HEAT_CAPTION : SPACE_CAPTION,
    });
    return h("div.panel", {}, explorer.heading(label, said), chart);
  };

  const projectionTrace = (groups, models, label, colour) => {
    const model = groups.levels("model").indexOf(label);
    if (model < 0) return [];
    const all = levelsOf(groups)[0].map((level, index) => ({ level, ...groups.at(model, index) }));
    const points = all.filter((one) => one.measured);
    const { paper } = explorer.theme();
    return [{
      type: "scatter",
      mode: "lines+markers",
      name: label,
      legendgroup: label,
      x: explorer.aside(points.map((one) => one.level), models.indexOf(label), models.length),
      y: points.map((one) => one.point),
      cliponaxis: false,
      line: { color: colour },
      marker: {
        color: points.map((one) => (one.few ? paper : colour)),
        size: 8,
        line: { color: colour, width: 2 },
      },
      error_y: {
        type: "data",
        symmetric: false,
        array: points.map((one) => one.upper - one.point),
        arrayminus: points.map((one) => one.point - one.lower),
        color: colour,
        thickness: 1,
      },
      customdata: points.map((one) => [label, explorer.said(one), one.level]),
      hovertemplate: "%{customdata[0]} at %{customdata[2]}<br>%{customdata[1]}<extra></extra>",
    }];
  };

  const projection = (page, task, name, groups, models) => {
    const colours = explorer.palette(page.overview, models);
    const [levels] = levelsOf(groups);
    const type = levels.every(format.isNumber) ? "linear" : "category";
    const chart = explorer.chart({
      label: `Rate over ${format.plain(name)}`,
      height: 300,
      traces: models.flatMap((label) => projectionTrace(groups, models, label, colours.get(label))),
      layout: {
        xaxis: { title: { text: format.plain(name) }, type, ...explorer.ticks(levels) },
        yaxis: { range: [-0.02, 1.02], tickformat: ".0%" },
        legend: explorer.LEGEND,
      },
      click: (point) => {
        const level = explorer.unlabel(point.customdata[2]);
        explorer.openTrials(page, { model: explorer.series(point), ...where(page, task, [name], [level]) });
      },
    });
    return h("div.panel", {}, h("h2", {}, `Projection on ${format.plain(name)}`), chart);
  };

  explorer.view({
    name: "surface",
    title: "Surfaces",
    level: "breaks",
    hint: "Rate over two parameters; points that differ in others are pooled.",
    ready: (overview) => overview.tasks.some(suits),
    async render(root, page) {
      const task = explorer.shownTask(page, suits);
      if (!task) {
        root.append(h("p.empty", {}, "No task here has points that differ in two parameters."));
        return;
      }
      const chosen = axesOf(page, task);
      const { axes, pair } = chosen;
      const models = (await explorer.shownModels(page, 2)).slice(0, MOST);
      const ask = (...names) => explorer.groups(page, ["model", ...names], { task: task.label, models });
      const [groups, ...flats] = await Promise.all([ask(...pair), ...axes.map((name) => ask(name))]);
      root.append(
        controls(page, task, chosen),
        h("div.grid", {}, models.map((label) => panel(page, task, pair, groups, label))),
        h("div.grid", {}, axes.map((name, place) => projection(page, task, name, flats[place], models))),
        explorer.numbers(page, groups, models, (levels) => where(page, task, pair, levels)),
        explorer.noted(groups.answer, explorer.limited(page, models, MOST)),
      );
    },
  });
}
