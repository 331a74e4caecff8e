"use strict";
// Estimates of groups of points, as all views of "Where it breaks" use them.
{
  const { h, format } = explorer;

  /** A row for each group of some models that is planned. */
  const rowsOf = (groups, models) => {
    const further = (found, size) =>
      found.flatMap((one) => Array.from({ length: size }, (_, index) => [...one, index]));
    const places = groups.sizes.slice(1).reduce(further, [[]]);
    const levels = (place) => place.map((index, axis) => groups.answer.levels[axis + 1][index]);
    const found = models.flatMap((label) => {
      const model = groups.levels("model").indexOf(label);
      if (model < 0) return [];
      return places.map((place) => ({ label, levels: levels(place), ...groups.at(model, ...place) }));
    });
    return found.filter((row) => row.planned);
  };

  const levelColumn = (name, axis, levels) => ({
    key: name,
    title: format.plain(name),
    left: !levels.every(format.isNumber),
    value: (row) => row.levels[axis],
  });

  const column = (key, title, name, show, more = {}) => ({ key, title, value: (row) => row[name], show, ...more });

  const NUMBERS = [
    column("rate", "rate", "point", (row) => format.percent(row.point), {
      parts: (row) => ({ value: row.point, lower: row.lower, upper: row.upper }),
    }),
    column("interval", "95%", "lower", (row) => format.interval(row)),
    column("trials", "trials", "trials", (row) => `${format.number(row.trials)}${row.few ? " ?" : ""}`),
    column("cut", "truncated", "cut", (row) => format.percent(row.cut)),
    column("invalid", "no answer read", "invalid"),
  ];

  /**
   * The numbers of a chart as a table, for those who cannot use it: each row leads to its trials.
   * @param {any} page
   * @param {any} groups - by model and one or two names
   * @param {string[]} models
   * @param {(levels: any[]) => any} trials - what the address of the trials says besides the model
   */
  explorer.numbers = (page, groups, models, trials) => {
    const names = groups.answer.by.slice(1);
    const link = (row) => explorer.trialsOf(page, { model: row.label, ...trials(row.levels) }, row.label);
    const columns = [
      column("model", "model", "label", link, { left: true }),
      ...names.map((name, axis) => levelColumn(name, axis, groups.answer.levels[axis + 1])),
      ...NUMBERS,
    ];
    const rows = rowsOf(groups, models);
    const table = explorer.table(page, { name: names.join("-"), prefix: "numbers-", rows, columns });
    return h("details.numbers", { id: "numbers" }, h("summary", {}, "Numbers"), table);
  };

  /** The part that filters mean, for what a bundle holds of whole models only. */
  explorer.livePart = (page) => (explorer.bundle ? {} : page.part());
  explorer.liveFilters = () => ({ models: true, tasks: !explorer.bundle, tiers: !explorer.bundle });

  /** The address of some trials; a bundle cannot look for conditions, and shows all of the model and the task. */
  explorer.trialsLink = (page, changes) => page.link("trials", explorer.bundle ? { ...changes, where: null } : changes);

  /** A link to some trials. */
  explorer.trialsOf = (page, changes, text, label = null) =>
    h("a", { href: explorer.trialsLink(page, changes), "aria-label": label }, text);

  /** Go to some trials. */
  explorer.openTrials = (page, changes) => {
    location.hash = explorer.trialsLink(page, changes);
  };

  /** A sentence on how many of all models are shown; null if all are. */
  explorer.limited = (page, models, most = "") => {
    const { length } = page.overview.models;
    if (length <= models.length) return null;
    return `${models.length} of ${length} models${most && `, at most ${most}`}; choose others above.`;
  };

  /** A sentence on the models of which a view shows nothing; null if there is none. */
  explorer.unmeasured = (groups, models) => {
    const size = groups.sizes.slice(1).reduce((a, b) => a * b, 1);
    const nothing = models.filter((label) => {
      const model = groups.levels("model").indexOf(label);
      return model < 0 || !groups.answer.trials.slice(model * size, (model + 1) * size).some((count) => count > 0);
    });
    return nothing.length ? `Nothing is measured here of ${nothing.join(", ")}.` : null;
  };

  /** Trials below which a number is marked as resting on few. */
  explorer.FEW = 30;
  /** Share of truncated trials from which a number is marked. */
  explorer.CUT = 0.02;
  /** Models that are shown where none is chosen. */
  const SHOWN = 5;

  explorer.MODES = [
    ["C_P", "guess-corrected", "C_P: guesses taken out, truncated trials wrong"],
    ["E_P", "share right", "E_P: share right, truncated trials wrong"],
    ["C_I", "without truncated", "C_I: guesses taken out, truncated trials left out"],
    ["E_I", "share right without truncated", "E_I: share right of the completed trials"],
  ];

  /** The choice of the estimator; a bundle holds the first one only. */
  explorer.rateSelect = (page) => (explorer.bundle ? null : explorer.select(page, "mode", explorer.MODES, "rate"));

  class Groups {
    constructor(answer) {
      this.answer = answer;
      this.sizes = answer.levels.map((levels) => levels.length);
    }
    /** The levels of a name. */
    levels(name) {
      return this.answer.levels[this.answer.by.indexOf(name)];
    }
    /** The group at indices in the order of `by`. */
    at(...indices) {
      const place = indices.reduce((sum, index, axis) => sum * this.sizes[axis] + index, 0);
      const found = {};
      for (
        const name of [
          "point",
          "lower",
          "upper",
          "trials",
          "completed",
          "correct",
          "invalid",
          "refused",
          "truncated",
          "transport",
          "missing",
          "points",
          "points_planned",
          "cut",
        ]
      ) found[name] = this.answer[name]?.[place] ?? null;
      found.few = found.trials > 0 && found.trials < explorer.FEW;
      found.planned = found.points_planned > 0;
      found.measured = found.point !== null && found.trials > 0;
      return found;
    }
  }

  /**
   * Groups of the part that filters mean.
   * @param {any} page
   * @param {string[]} by
   * @param {{models?: string[], task?: string}} [more] - a bundle has all models or none
   */
  explorer.groups = async (page, by, more = {}) => {
    const asked = {
      ...(explorer.bundle && more.task ? {} : page.part()),
      mode: explorer.bundle ? null : page.get("mode"),
      by: by.join(","),
    };
    if (more.task) asked.task = more.task;
    if (more.models && !explorer.bundle) asked.model = more.models;
    return new Groups(await page.ask("groups", asked));
  };

  /**
   * The models that are chosen; else the best ones by their mean over all tasks, the same whatever task or tier is
   * looked at.
   */
  explorer.shownModels = async (page, most = SHOWN) => {
    const known = page.overview.models.map((one) => one.label);
    const wanted = page.all("model").filter((label) => known.includes(label));
    if (wanted.length) return wanted;
    if (known.length <= most) return known;
    return explorer.best(
      new Groups(
        await page.ask(
          "groups",
          explorer.bundle
            ? { by: "model,task" }
            : { where: page.all("where"), mode: page.get("mode"), by: "model,task" },
        ),
      ),
    ).slice(0, most);
  };

  /** Rates of a model on the tasks of which it has one. */
  const ratesOf = (groups, model) =>
    groups.levels("task").map((_, task) => groups.at(model, task).point).filter(format.isNumber);

  /** Tasks of which any model has a rate. */
  const measuredTasks = (groups) =>
    groups.levels("task").filter((_, task) =>
      groups.levels("model").some((_, model) => format.isNumber(groups.at(model, task).point))
    ).length;

  /** Labels of models that lack tasks which others have: means over other tasks are not compared. */
  explorer.lacking = (groups) => {
    const most = measuredTasks(groups);
    return groups.levels("model").filter((_, model) => ratesOf(groups, model).length < most);
  };

  /**
   * Labels of models by their mean over tasks, best first; behind them those that lack tasks, together with those that
   * have the same ones.
   */
  explorer.best = (groups) => {
    const found = groups.levels("model").map((label, place) => {
      const rates = ratesOf(groups, place);
      const which = groups.levels("task").filter((_, task) => format.isNumber(groups.at(place, task).point)).join("\n");
      return {
        label,
        which,
        tasks: rates.length,
        mean: rates.length ? rates.reduce((a, b) => a + b, 0) / rates.length : -1,
      };
    });
    return found.sort((a, b) =>
      b.tasks - a.tasks || (a.which < b.which ? -1 : a.which > b.which ? 1 : 0) || b.mean - a.mean
    ).map((one) => one.label);
  };

  /** The task that a view of one task shows: the chosen one, or the first that offers what it needs. */
  explorer.shownTask = (page, suits = () => true) => {
    const there = page.overview.tasks.filter(suits);
    const chosen = page.all("task");
    return there.find((one) => chosen.includes(one.label)) || there[0] || null;
  };

  /** Parameters of a task in which its points differ. */
  explorer.varying = (task) => task.params.filter((one) => one.levels.length > 1);

  /** One of the tasks, as a list that sets the filter of tasks to it. */
  explorer.oneTask = (page, task, suits = () => true) => {
    const there = page.overview.tasks.filter(suits);
    return h(
      "label.select",
      {},
      "task ",
      h(
        "select",
        { id: "one-task", onchange: (event) => page.set({ task: event.target.value }) },
        there.map((one) =>
          h("option", { value: one.label, selected: task !== null && one.label === task.label }, one.label)
        ),
      ),
    );
  };

  /** What a number of a group says, for hovers and titles. */
  explorer.said = (group) => {
    if (!group.planned) return "not planned";
    if (!group.measured) return "not measured yet";
    const parts = [
      `${format.percent(group.point)} (${format.interval(group)})`,
      `${format.number(group.trials)} trials`,
    ];
    if (group.cut) parts.push(`${format.percent(group.cut)} truncated`);
    if (group.invalid) parts.push(`${format.number(group.invalid)} without an answer`);
    if (group.few) parts.push("few trials");
    if (group.points < group.points_planned) parts.push(`${group.points} of ${group.points_planned} points so far`);
    return parts.join(", ");
  };

  /** The condition of a parameter's value, as filters take it. */
  explorer.condition = (name, value) => `${name}=${value}`;

  /** The notes of an answer, below a view. */
  explorer.noted = (answer, ...more) => {
    const texts = [...more, ...(answer.warnings || [])].filter(Boolean);
    return texts.length ? h("ul.notes", {}, texts.map((text) => h("li", {}, text))) : document.createDocumentFragment();
  };
}
