"use strict";
// Rate over two parameters of a task: in space with its lower bound as a shadow, or as a heat map, with projections.
{
  const { h, format } = explorer;
  const MOST = 4;
  const suits = (task) => explorer.varying(task).length > 1;

  const grid = (groups, model, read) =>
    groups.answer.levels[2].map((_, j) => groups.answer.levels[1].map((__, i) => read(groups.at(model, i, j))));

  const space = (groups, model, label) => {
    const [x, y] = [groups.answer.levels[1], groups.answer.levels[2]];
    const theme = explorer.theme();
    const marks = (keep, color, symbol, size) => {
      const found = x.flatMap((a, i) => y.map((b, j) => ({ a, b, group: groups.at(model, i, j) }))).filter((one) =>
        one.group.measured && keep(one.group)
      );
      return {
        type: "scatter3d",
        mode: "markers",
        name: label,
        x: found.map((one) => one.a),
        y: found.map((one) => one.b),
        z: found.map((one) => one.group.point),
        marker: { size, color, symbol },
        customdata: found.map((one) => explorer.said(one.group)),
        hovertemplate: "%{x}, %{y}<br>%{customdata}<extra></extra>",
        showlegend: false,
      };
    };
    const towers = {
      type: "scatter3d",
      mode: "lines",
      hoverinfo: "skip",
      showlegend: false,
      line: { color: theme.bad, width: 5 },
      x: [],
      y: [],
      z: [],
    };
    x.forEach((a, i) =>
      y.forEach((b, j) => {
        const group = groups.at(model, i, j);
        if (group.measured && group.cut > explorer.CUT) {
          towers.x.push(a, a, null);
          towers.y.push(b, b, null);
          towers.z.push(group.point, Math.min(1, group.point + group.cut), null);
        }
      })
    );
    const told = grid(groups, model, explorer.said);
    return [
      {
        type: "surface",
        name: label,
        x,
        y,
        z: grid(groups, model, (one) => one.lower),
        showscale: false,
        opacity: 0.3,
        colorscale: [[0, theme.faint], [1, theme.faint]],
        hoverinfo: "skip",
        connectgaps: false,
      },
      {
        type: "surface",
        name: label,
        x,
        y,
        z: grid(groups, model, (one) => one.point),
        cmin: 0,
        cmax: 1,
        colorscale: explorer.SCALE,
        showscale: false,
        opacity: 0.95,
        connectgaps: false,
        text: told,
        hovertemplate: "%{x}, %{y}<br>%{text}<extra></extra>",
        contours: { x: { show: true, color: theme.line, width: 1 }, y: { show: true, color: theme.line, width: 1 } },
      },
      // Each cell has a mark: one without neighbours would not be seen in a surface.
      marks((one) => one.lower <= 0.9 && !one.few, theme.text, "circle", 2.5),
      marks((one) => one.lower <= 0.9 && one.few, theme.text, "circle-open", 5),
      marks((one) => one.lower > 0.9, theme.good, "diamond", 5),
      towers,
    ];
  };

  const heat = (groups, model) => {
    const read = grid(groups, model, (one) => one);
    const cells = groups.answer.levels[2].flatMap((b, j) =>
      groups.answer.levels[1].map((a, i) => ({ a, b, group: read[j][i] }))
    );
    const pending = cells.filter((one) => one.group.planned && !one.group.measured);
    const texts = cells.filter((one) => one.group.measured).map(({ a, b, group }) => ({
      x: String(a),
      y: String(b),
      share: group.point,
      text: `${format.fixed(100 * group.point, 0)}${group.cut > explorer.CUT ? " ✂" : ""}${group.few ? " ?" : ""}`,
    }));
    return [{
      type: "scatter",
      mode: "text",
      x: pending.map((one) => String(one.a)),
      y: pending.map((one) => String(one.b)),
      text: pending.map(() => "…"),
      textfont: { size: 18 },
      hovertemplate: "%{x}, %{y}<br>not measured yet<extra></extra>",
      showlegend: false,
    }, {
      type: "heatmap",
      x: groups.answer.levels[1].map(String),
      y: groups.answer.levels[2].map(String),
      z: read.map((row) => row.map((one) => one.point)),
      zmin: 0,
      zmax: 1,
      colorscale: explorer.SCALE,
      xgap: 1,
      ygap: 1,
      hoverongaps: true,
      customdata: read.map((row) => row.map(explorer.said)),
      hovertemplate: "%{x}, %{y}<br>%{customdata}<extra></extra>",
      colorbar: { tickformat: ".0%", thickness: 10 },
    }, explorer.cellTexts(texts)];
  };

  const projection = (flat, models, colours, theme) =>
    models.flatMap((label) => {
      const model = flat.levels("model").indexOf(label);
      if (model < 0) return [];
      const points = flat.answer.levels[1].map((level, index) => ({ level, ...flat.at(model, index) })).filter((one) =>
        one.measured
      );
      const colour = colours.get(label);
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
          color: points.map((one) => (one.few ? theme.paper : colour)),
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
    });

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
      const names = explorer.varying(task).map((one) => one.name);
      const x = names.includes(page.get("x")) ? page.get("x") : names[0];
      const y = names.includes(page.get("y")) && page.get("y") !== x ? page.get("y") : names.find((name) => name !== x);
      const form = page.get("form") === "heat" ? "heat" : "space";
      const models = (await explorer.shownModels(page, 2)).slice(0, MOST);
      // As names stand in the task, so that a bundle needs each pair once.
      const [one, two] = names.indexOf(x) < names.indexOf(y) ? [x, y] : [y, x];
      const [groups, ...flats] = await Promise.all([
        explorer.groups(page, ["model", one, two], { task: task.label, models }),
        ...[x, y].map((name) => explorer.groups(page, ["model", name], { task: task.label, models })),
      ]);
      const numeric = groups.answer.levels.slice(1).every((levels) => levels.every(format.isNumber));
      const pair = [format.plain(one), format.plain(two)];
      const order = (first, all) =>
        [first, ...all.filter((name) => name !== first)].map((name) => [name, format.plain(name)]);
      const theme = explorer.theme();
      const go = (label, a, b) => {
        location.hash = explorer.trialsLink(page, {
          model: label,
          task: task.label,
          where: [...page.all("where"), explorer.condition(one, a), explorer.condition(two, b)],
        });
      };
      root.append(
        explorer.filters(
          page,
          { models: true, tasks: false, tiers: !explorer.bundle },
          explorer.oneTask(page, task, suits),
          explorer.select(page, "x", order(names[0], names), "x"),
          explorer.select(page, "y", order(names.find((name) => name !== x), names.filter((name) => name !== x)), "y"),
          explorer.choice(page, "form", [["space", "3-D"], ["heat", "heat map"]], "Form"),
          explorer.rateSelect(page),
        ),
        h(
          "div.grid",
          {},
          models.map((label) => {
            const model = groups.levels("model").indexOf(label);
            if (model < 0) return null;
            const said = summary(groups, model);
            const none = numeric && !hasBlock(groups, model);
            const flat = form === "heat" || !numeric || none;
            return h(
              "div.panel",
              {},
              h("h3", {}, label, " ", h("span.status", {}, said)),
              explorer.chart({
                label: `Rate of ${label} on ${task.label} over ${pair.join(" and ")}: ${said}`,
                height: flat ? 420 : explorer.narrow() ? 360 : 480,
                name: `surface-${task.label}-${label}`,
                traces: flat ? heat(groups, model) : space(groups, model, label),
                layout: flat
                  ? {
                    xaxis: { title: { text: pair[0] }, ...whole(groups.answer.levels[1]) },
                    yaxis: { title: { text: pair[1] }, ...whole(groups.answer.levels[2]) },
                  }
                  : {
                    margin: { l: 0, r: 0, t: 0, b: 0 },
                    uirevision: "kept",
                    scene: {
                      xaxis: { title: { text: pair[0] }, tickvals: groups.answer.levels[1] },
                      yaxis: { title: { text: pair[1] }, tickvals: groups.answer.levels[2] },
                      zaxis: { title: { text: "rate" }, range: [0, 1], tickformat: ".0%" },
                      aspectmode: "manual",
                      aspectratio: { x: 1.2, y: 1.2, z: 0.8 },
                      camera: { eye: explorer.narrow() ? { x: 2.6, y: -2.6, z: 1.6 } : { x: 1.5, y: -1.5, z: 0.9 } },
                    },
                  },
                click: (point) => go(label, explorer.unlabel(point.x), explorer.unlabel(point.y)),
                caption: flat
                  ? `${
                    form === "space"
                      ? (none
                        ? "No four neighbouring cells are measured, so that there is no surface. "
                        : "Only numbers span a surface. ")
                      : ""
                  }✂ more than ${
                    format.percent(explorer.CUT, 0)
                  } truncated, ? fewer than ${explorer.FEW} trials, … planned and not measured, empty: not planned.`
                  : `Drag to turn. Grey: lower bound of the 95 % interval. Green diamond: it is above 90 %. Open mark: fewer than ${explorer.FEW} trials. Red tower: share truncated. Hole: nothing measured.`,
              }),
            );
          }),
        ),
        h(
          "div.grid",
          {},
          [x, y].map((name, place) =>
            h(
              "div.panel",
              {},
              h("h3", {}, `Projection on ${format.plain(name)}`),
              explorer.chart({
                label: `Rate over ${format.plain(name)}`,
                height: 300,
                traces: projection(flats[place], models, explorer.palette(page.overview, models), theme),
                layout: {
                  xaxis: {
                    title: { text: format.plain(name) },
                    type: flats[place].answer.levels[1].every(format.isNumber) ? "linear" : "category",
                    ...explorer.ticks(flats[place].answer.levels[1]),
                  },
                  yaxis: { range: [-0.02, 1.02], tickformat: ".0%" },
                  legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
                },
                click: (point) => {
                  location.hash = explorer.trialsLink(page, {
                    model: explorer.series(point),
                    task: task.label,
                    where: [...page.all("where"), explorer.condition(name, explorer.unlabel(point.customdata[2]))],
                  });
                },
              }),
            )
          ),
        ),
        explorer.numbers(
          page,
          groups,
          models,
          ([a, b]) => ({
            task: task.label,
            where: [...page.all("where"), explorer.condition(one, a), explorer.condition(two, b)],
          }),
        ),
        explorer.noted(
          groups.answer,
          page.overview.models.length > models.length
            ? `${models.length} of ${page.overview.models.length} models, at most ${MOST}; choose others above.`
            : null,
        ),
      );
    },
  });

  /** Whether four neighbouring cells are measured. */
  const hasBlock = (groups, model) => {
    const there = (i, j) => groups.at(model, i, j).measured;
    const [wide, deep] = [groups.sizes[1], groups.sizes[2]];
    for (let i = 0; i + 1 < wide; i++) {
      for (
        let j = 0;
        j + 1 < deep;
        j++
      ) if (there(i, j) && there(i + 1, j) && there(i, j + 1) && there(i + 1, j + 1)) return true;
    }
    return false;
  };

  // All levels, measured or not.
  const whole = (levels) => ({
    type: "category",
    categoryorder: "array",
    categoryarray: levels.map(String),
    range: [-0.5, levels.length - 0.5],
  });

  const summary = (groups, model) => {
    const found = groups.answer.levels[1].flatMap((_, i) =>
      groups.answer.levels[2].map((__, j) => groups.at(model, i, j))
    );
    const values = found.filter((one) => one.measured).map((one) => one.point);
    if (!values.length) return "nothing measured";
    const missing = found.filter((one) => one.planned && !one.measured).length;
    const few = found.filter((one) => one.few).length;
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    return `least ${format.percent(Math.min(...values), 0)}, mean of ${values.length} cells ${
      format.percent(mean, 0)
    }, most ${format.percent(Math.max(...values), 0)}${few ? `; ${few} with fewer than ${explorer.FEW} trials` : ""}${
      missing ? `; ${missing} not measured` : ""
    }`;
  };
}
