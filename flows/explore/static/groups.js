"use strict";
// Estimates of groups of points, as all views of "Where it breaks" use them.
{
  const { h, format } = explorer;

  /** A colour for each of some models: its own, or the next one where another of them has that already. */
  explorer.palette = (overview, labels) => {
    const taken = new Set();
    return new Map(labels.map((label) => {
      const own = explorer.colours.indexOf(explorer.colour(overview, label));
      const order = explorer.colours.map((_, step) => (own + step) % explorer.colours.length);
      const place = order.find((one) => !taken.has(one)) ?? own;
      taken.add(place);
      return [label, explorer.colours[place]];
    }));
  };
  explorer.DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

  /**
   * The numbers of a chart as a table, for those who cannot use it: each row leads to its trials.
   * @param {any} page
   * @param {any} groups - by model and one or two names
   * @param {string[]} models
   * @param {(levels: any[]) => any} trials - what the address of the trials says besides the model
   */
  explorer.numbers = (page, groups, models, trials) => {
    const names = groups.answer.by.slice(1);
    const places = groups.sizes.slice(1).reduce(
      (found, size) => found.flatMap((one) => Array.from({ length: size }, (_, index) => [...one, index])),
      [[]],
    );
    const rows = models.flatMap((label) => {
      const model = groups.levels("model").indexOf(label);
      return model < 0 ? [] : places.map((place) => ({
        label,
        levels: place.map((index, axis) => groups.answer.levels[axis + 1][index]),
        ...groups.at(model, ...place),
      }));
    }).filter((row) => row.planned);
    return h(
      "details.numbers",
      { id: "numbers" },
      h("summary", {}, "Numbers"),
      explorer.table(page, {
        name: names.join("-"),
        prefix: "numbers-",
        rows,
        columns: [
          {
            key: "model",
            title: "model",
            left: true,
            value: (row) => row.label,
            show: (row) =>
              h("a", { href: explorer.trialsLink(page, { model: row.label, ...trials(row.levels) }) }, row.label),
          },
          ...names.map((name, axis) => ({
            key: name,
            title: format.plain(name),
            left: !groups.answer.levels[axis + 1].every(format.isNumber),
            value: (row) => row.levels[axis],
          })),
          {
            key: "rate",
            title: "rate",
            value: (row) => row.point,
            show: (row) => format.percent(row.point),
            parts: (row) => ({ value: row.point, lower: row.lower, upper: row.upper }),
          },
          { key: "interval", title: "95 %", value: (row) => row.lower, show: (row) => format.interval(row) },
          {
            key: "trials",
            title: "trials",
            value: (row) => row.trials,
            show: (row) => `${format.number(row.trials)}${row.few ? " ?" : ""}`,
          },
          {
            key: "cut",
            title: "truncated",
            value: (row) => row.cut,
            show: (row) => format.percent(row.cut),
          },
          { key: "invalid", title: "no answer read", value: (row) => row.invalid },
        ],
      }),
    );
  };

  /** The part that filters mean, for what a bundle holds of whole models only. */
  explorer.livePart = (page) => (explorer.bundle ? {} : page.part());
  explorer.liveFilters = () => ({ models: true, tasks: !explorer.bundle, tiers: !explorer.bundle });

  /** The address of some trials; a bundle cannot look for conditions, and shows all of the model and the task. */
  explorer.trialsLink = (page, changes) => page.link("trials", explorer.bundle ? { ...changes, where: null } : changes);

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

  /** The models that are chosen; else the best ones by their mean over all tasks, the same whatever task or tier is looked at. */
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

  /** Labels of models by their mean over tasks, best first; behind them those that lack tasks, together with those that have the same ones. */
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

  // Cividis: even steps of lightness, and the same to those who see fewer colours.
  const STOPS = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  explorer.SCALE = STOPS.map((stop, place) => [place / (STOPS.length - 1), `rgb(${stop.join(",")})`]);

  /** Luminance at which black and white text are as easy to read, at a contrast of 4.58 (WCAG 2.2). */
  const BALANCE = Math.sqrt(1.05 * 0.05) - 0.05;

  const luminance = (colour) => {
    const [red, green, blue] = colour.map(
      (value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4),
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  /** Background and text colour of a share. */
  explorer.shade = (share) => {
    const at = Math.min(Math.max(share, 0), 1) * (STOPS.length - 1);
    const low = Math.min(Math.floor(at), STOPS.length - 2);
    const mixed = STOPS[low].map((value, channel) =>
      Math.round(value + (STOPS[low + 1][channel] - value) * (at - low))
    );
    return { background: `rgb(${mixed.join(",")})`, color: luminance(mixed) > BALANCE ? "#000" : "#fff" };
  };

  /**
   * Texts of a heat map as a trace of their own: plotly.js itself writes them in white or in a grey that is hard to read.
   * Each cell is {x, y, text, share}; one without a share lies on the page.
   */
  explorer.cellTexts = (cells) => ({
    type: "scatter",
    mode: "text",
    x: cells.map((one) => one.x),
    y: cells.map((one) => one.y),
    text: cells.map((one) => one.text),
    hoverinfo: "skip",
    showlegend: false,
    textfont: {
      color: cells.map((one) => (format.isNumber(one.share) ? explorer.shade(one.share).color : explorer.theme().text)),
    },
  });

  /** Levels side by side where several series share them: a small step aside for numbers, so that intervals do not hide each other. */
  explorer.aside = (levels, place, count) => {
    if (!levels.every(format.isNumber) || levels.length < 2) return levels;
    const sorted = [...levels].sort((a, b) => a - b);
    const gap = Math.min(...sorted.slice(1).map((value, index) => value - sorted[index]).filter((value) => value > 0));
    const step = Math.min(0.06, 0.4 / count) * gap;
    return levels.map((value) => value + (place - (count - 1) / 2) * step);
  };

  /** Ticks at the levels themselves, where they are few. */
  explorer.ticks = (levels) => (levels.length <= 16 && levels.every(format.isNumber) ? { tickvals: levels } : {});

  /** Names on an axis as it has room for them. */
  explorer.named = (names, most = explorer.narrow() ? 14 : 40) => {
    const short = explorer.shortened(names, most);
    return { type: "category", tickmode: "array", tickvals: names, ticktext: names.map((name) => short.get(name)) };
  };

  /** The condition of a parameter's value, as filters take it. */
  explorer.condition = (name, value) => `${name}=${value}`;

  /** The notes of an answer, below a view. */
  explorer.noted = (answer, ...more) => {
    const texts = [...more, ...(answer.warnings || [])].filter(Boolean);
    return texts.length ? h("ul.notes", {}, texts.map((text) => h("li", {}, text))) : document.createDocumentFragment();
  };
}
