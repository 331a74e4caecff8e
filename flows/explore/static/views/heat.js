"use strict";
// Every model on every task: a table of coloured cells, each of which leads to its trials.
{
  const { h, format } = explorer;

  const cell = (page, group, label, task) => {
    const title = `${label}, ${task}: ${explorer.said(group)}`;
    if (!group.measured) {
      return h("td.cell", { class: group.planned ? "pending" : "none", title }, group.planned ? "…" : "");
    }
    const marks = [
      group.cut > explorer.CUT ? h("span.cut", { "aria-label": "truncated" }, "✂") : null,
      group.few ? h("span.few", { "aria-label": "few trials" }, "?") : null,
    ];
    return h(
      "td.cell",
      { title, style: explorer.shade(group.point), class: group.few ? "uncertain" : "" },
      h("a", { href: explorer.trialsLink(page, { model: label, task }) }, format.fixed(100 * group.point, 0), marks),
    );
  };

  explorer.view({
    name: "heat",
    title: "Tasks",
    level: "breaks",
    hint: "Rate of each model on each task. A cell leads to its trials.",
    async render(root, page) {
      const groups = await explorer.groups(page, ["model", "task"]);
      const tasks = groups.levels("task");
      const labels = groups.levels("model");
      const wanted = page.all("model");
      const spider = explorer.views.get("radar").ready(page.overview);
      const order = page.get("sort") || "mean";
      const ranked = explorer.best(groups);
      const down = !order.startsWith("-");
      const by = tasks.indexOf(order.replace(/^-/, ""));
      const lacking = by < 0 && order !== "name" ? explorer.lacking(groups) : [];
      const value = (label) => groups.at(labels.indexOf(label), by).point ?? -1;
      const sorted = order === "name"
        ? [...ranked].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
        : by < 0
        ? ranked
        : [...ranked].sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
      const rows = sorted.filter((label) => !wanted.length || wanted.includes(label));
      const head = (key, title) => {
        const mine = order.replace(/^-/, "") === key;
        return h(
          "th",
          { scope: "col", "aria-sort": mine ? (down ? "descending" : "ascending") : null },
          h(
            "button",
            {
              type: "button",
              id: `sort-${key}`,
              onclick: () => page.set({ sort: mine && down && tasks.includes(key) ? `-${key}` : key }),
            },
            title,
            mine ? h("span.arrow", { "aria-hidden": "true" }, down ? " ↓" : " ↑") : null,
          ),
        );
      };
      root.append(
        explorer.filters(page, { models: true }, explorer.rateSelect(page)),
        h(
          "div.scroll",
          { tabindex: "0", role: "region", "aria-label": "Rates by model and task" },
          h(
            "table.heat",
            {},
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                h(
                  "th.left",
                  { scope: "col" },
                  h("button", {
                    type: "button",
                    id: "sort-mean",
                    onclick: () => page.set({ sort: order === "mean" ? "name" : null }),
                  }, order === "name" ? "model (A–Z)" : "model"),
                ),
                tasks.map((task) => head(task, task)),
              ),
            ),
            explorer.body(rows.map((label) => [label, labels.indexOf(label)]), ([label, model]) =>
              h(
                "tr",
                {},
                h(
                  "th.left",
                  { scope: "row" },
                  spider
                    ? h("a", { href: page.link("radar", { model: label }) }, label)
                    : h("a", { href: explorer.trialsLink(page, { model: label }) }, label),
                ),
                tasks.map((task, place) => cell(page, groups.at(model, place), label, task)),
              )),
          ),
        ),
        legend(),
        explorer.noted(
          groups.answer,
          lacking.length === labels.length
            ? "No model has all tasks, and means over different ones cannot be compared: models with the same tasks stand together."
            : lacking.length
            ? `Behind all others, as their means are over fewer tasks and cannot be compared with those: ${
              lacking.slice(0, 12).join(", ")
            }${lacking.length > 12 ? " …" : ""}.`
            : null,
          "Models stand in the order of their mean over these tasks; a click on a task sorts by it.",
        ),
      );
    },
  });

  const legend = () =>
    h(
      "p.legend",
      {},
      "0 % ",
      h("span.ramp", {
        style: { background: `linear-gradient(to right, ${explorer.SCALE.map(([, colour]) => colour).join(",")})` },
      }),
      " 100 %",
      h("span.key", {}, h("span.cut", {}, "✂"), ` more than ${format.percent(explorer.CUT, 0)} truncated`),
      h("span.key", {}, h("span.few", {}, "?"), ` fewer than ${explorer.FEW} trials`),
      h("span.key", {}, h("span.swatch.pending", {}, "…"), " planned, not measured"),
      h("span.key", {}, h("span.swatch.none"), " not planned"),
    );
}
