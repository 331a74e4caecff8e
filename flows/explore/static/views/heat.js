"use strict";
// Every model on every task: a table of coloured cells, each of which leads to its trials.
{
  const { h, format } = explorer;

  const cell = (page, group, label, task) => {
    const title = `${label}, ${task}: ${explorer.said(group)}`;
    if (!group.measured) {
      return h("td.cell", { class: group.planned ? "pending" : "none", title }, group.planned ? "…" : "");
    }
    const cut = group.cut > explorer.CUT ? h("span.cut", { role: "img", "aria-label": "truncated" }, "✂") : null;
    const few = group.few ? h("span.few", { role: "img", "aria-label": "few trials" }, "?") : null;
    const text = [format.fixed(100 * group.point, 0), cut, few];
    const style = explorer.shade(group.point);
    return h(
      "td.cell",
      { title, style, class: group.few ? "uncertain" : "" },
      explorer.trialsOf(page, { model: label, task }, text, title),
    );
  };

  /** What rows are ordered by: "mean", "name" or a task, of which the best come first unless it has a minus. */
  const orderOf = (page) => {
    const order = page.get("sort") || "mean";
    return { order, key: order.replace(/^-/, ""), down: !order.startsWith("-") };
  };

  const sorted = (page, groups) => {
    const { order, key, down } = orderOf(page);
    const ranked = explorer.best(groups);
    if (order === "name") return ranked.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const by = groups.levels("task").indexOf(key);
    if (by < 0) return ranked;
    const labels = groups.levels("model");
    const value = (label) => groups.at(labels.indexOf(label), by).point ?? -1;
    return ranked.sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
  };

  const taskHead = (page, task) => {
    const { key, down } = orderOf(page);
    const mine = key === task;
    const sort = () => page.set({ sort: mine && down ? `-${task}` : task });
    const button = { type: "button", id: `sort-${task}`, onclick: sort };
    const order = mine ? (down ? "descending" : "ascending") : null;
    const label = h("button", button, task, mine ? explorer.arrow(down) : null);
    return h("th", { scope: "col", "aria-sort": order }, label);
  };

  const modelHead = (page) => {
    const { order } = orderOf(page);
    const sort = () => page.set({ sort: order === "mean" ? "name" : null });
    const button = { type: "button", id: "sort-mean", onclick: sort };
    return h("th.left", { scope: "col" }, h("button", button, order === "name" ? "model (A–Z)" : "model"));
  };

  const table = (page, groups, rows) => {
    const tasks = groups.levels("task");
    const labels = groups.levels("model");
    const spider = explorer.views.get("radar").ready(page.overview);
    const name = (label) =>
      spider
        ? h("a", { href: page.link("radar", { model: label }) }, label)
        : explorer.trialsOf(page, { model: label }, label);
    const line = (label) => {
      const cells = tasks.map((task, place) => cell(page, groups.at(labels.indexOf(label), place), label, task));
      return h("tr", {}, h("th.left", { scope: "row" }, name(label)), cells);
    };
    const heads = h("tr", {}, modelHead(page), tasks.map((task) => taskHead(page, task)));
    return h("table.heat", {}, h("thead", {}, heads), explorer.body(rows, line));
  };

  const legend = () => {
    const ramp = `linear-gradient(to right, ${explorer.SCALE.map(([, colour]) => colour).join(",")})`;
    const cut = ` more than ${format.percent(explorer.CUT, 0)} truncated`;
    return h(
      "p.legend",
      {},
      "0% ",
      h("span.ramp", { style: { background: ramp } }),
      " 100%",
      h("span.key", {}, h("span.cut", {}, "✂"), cut),
      h("span.key", {}, h("span.few", {}, "?"), ` fewer than ${explorer.FEW} trials`),
      h("span.key", {}, h("span.swatch.pending", {}, "…"), " planned, not measured"),
      h("span.key", {}, h("span.swatch.none"), " not planned"),
    );
  };

  /** What is said of models that lack tasks, where rows are ordered by means; null if none does. */
  const lackingNote = (page, groups) => {
    const { order, key } = orderOf(page);
    if (order === "name" || groups.levels("task").includes(key)) return null;
    const lacking = explorer.lacking(groups);
    if (lacking.length === groups.levels("model").length) {
      return "No model has all tasks, and means over different ones cannot be compared: " +
        "models with the same tasks stand together.";
    }
    if (!lacking.length) return null;
    const names = lacking.slice(0, 12).join(", ") + (lacking.length > 12 ? " …" : "");
    return `Behind all others, as their means are over fewer tasks and cannot be compared with those: ${names}.`;
  };

  explorer.view({
    name: "heat",
    title: "Tasks",
    level: "breaks",
    hint: "Rate of each model on each task. A cell leads to its trials.",
    async render(root, page) {
      const groups = await explorer.groups(page, ["model", "task"]);
      const wanted = page.all("model");
      const rows = sorted(page, groups).filter((label) => !wanted.length || wanted.includes(label));
      const scroll = { tabindex: "0", role: "region", "aria-label": "Rates by model and task" };
      root.append(
        explorer.filters(page, { models: true }, explorer.rateSelect(page)),
        h("div.scroll", scroll, table(page, groups, rows)),
        legend(),
        explorer.noted(
          groups.answer,
          lackingNote(page, groups),
          "Models stand in the order of their mean over these tasks; a click on a task sorts by it.",
        ),
      );
    },
  });
}
