"use strict";
// In a bundle, the answers that a server would look up in the cube: trials out of the files that the bundle has.
{
  const MOST_FILES = 400;
  const groups = explorer.bundle.trials;
  const files = new Map();
  const load = (key) => {
    if (!files.has(key)) files.set(key, explorer.fromBundle(key));
    return files.get(key);
  };
  const list = (value) => [value].flat().filter((one) => one !== null && one !== undefined && one !== "");
  const sorted = (params) =>
    JSON.stringify(
      Object.entries(typeof params === "string" ? JSON.parse(params) : params).sort(([a], [b]) => (a < b ? -1 : 1)),
    );
  const refuse = (message, remedy) => {
    throw new explorer.AnswerError(message, remedy);
  };

  /** All rows of some models and tasks, in order, that have the outcomes and tiers asked for. */
  const rowsOf = async (params) => {
    const [models, tasks, status, tiers] = ["model", "task", "status", "tier"].map((name) => list(params[name]));
    if (list(params.where).length) {
      refuse("A bundle cannot look for conditions.", "Remove them, or open the cube itself: evalcube explore CUBE");
    }
    const mine = groups.filter((one) =>
      (!models.length || models.includes(one.label)) && (!tasks.length || tasks.includes(one.task))
    );
    if (mine.length > MOST_FILES) {
      refuse("There are too many trials here to be shown together.", "Choose models or tasks.");
    }
    const found = await Promise.all(
      mine.map(async (one) => (await load(`rows?${one.name}`)).map((row) => ({ ...row, group: one }))),
    );
    return found.flat().filter((row) =>
      (!status.length || status.includes(row.status)) &&
      (!tiers.length || row.tiers.some((tier) => tiers.includes(tier)))
    );
  };

  const order = (rows, sort) => {
    const key = sort.replace(/^-/, "");
    if (!key) return rows;
    const sign = sort.startsWith("-") ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [left, right] = [a[key], b[key]];
      if ((left ?? null) === null || (right ?? null) === null) {
        return ((left ?? null) === null) - ((right ?? null) === null);
      }
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
  };

  const find = async (params, label) => {
    const [task, point, trial, repeat, cube] = [params.asked, params.point, params.trial, params.repeat, params.cube]
      .map((value) => list(value)[0]);
    const wanted = point ? sorted(point.startsWith("{") ? point : {}) : null;
    for (
      const one of groups.filter((group) =>
        group.label === label && group.task === task && (cube === undefined || String(group.cube) === cube)
      )
    ) {
      const rows = await load(`rows?${one.name}`);
      const row = rows.find((item) =>
        String(item.trial) === String(trial || 0) && String(item.repeat) === String(repeat || 0) &&
        (wanted === null || sorted(item.params) === wanted)
      );
      if (row) return { ...row, group: one };
    }
    return null;
  };

  const needed = async (params) =>
    (await find(params, list(params.evaluation)[0])) ||
    refuse("This bundle does not hold that trial.", "Its cube does: evalcube explore CUBE");

  explorer.bundled = {
    async trials(params) {
      const rows = order(await rowsOf(params), String(list(params.sort)[0] || ""));
      const offset = Number(params.offset) || 0;
      const limit = Number(params.limit) || 50;
      const columns = ["tokens", "latency", "difficulty", "reference", "answer"].map((name) => ({
        name,
        kind: name === "reference" || name === "answer" ? "text" : "number",
        source: "cube",
        meaning: "",
      }));
      return {
        columns,
        rows: rows.slice(offset, offset + limit).map((row, place) => ({ ...row, n: offset + place })),
        offset,
        next: offset + limit < rows.length ? offset + limit : null,
        count: rows.length,
        notes: explorer.bundle.notes,
      };
    },
    async trial(params) {
      const row = await needed(params);
      const { together } = explorer.bundle;
      const texts = await load(`texts?${row.group.name}-${Math.floor(row.n / together)}`);
      return texts[row.n % together];
    },
    async same(params) {
      const task = list(params.asked)[0];
      const labels = [...new Set(groups.filter((one) => one.task === task).map((one) => one.label))].slice(
        0,
        MOST_FILES,
      );
      const found = await Promise.all(labels.map((label) => find({ ...params, cube: [] }, label)));
      return {
        rows: found.filter(Boolean).map(({ label, cube, status, tokens }) => ({ label, cube, status, tokens })),
      };
    },
  };
}
