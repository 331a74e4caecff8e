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
  const isAbsent = (value) => value === null || value === undefined;
  const list = (value) => [value].flat().filter((one) => !isAbsent(one) && one !== "");

  /** Parameters as one text, whatever their order. */
  const sorted = (params) => {
    const pairs = Object.entries(typeof params === "string" ? JSON.parse(params) : params);
    return JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
  };

  const refuse = (message, remedy) => {
    throw new explorer.AnswerError(message, remedy);
  };

  /** All rows of some models and tasks, in order, that have the outcomes and tiers asked for. */
  const rowsOf = async (params) => {
    const [models, tasks, status, tiers] = ["model", "task", "status", "tier"].map((name) => list(params[name]));
    if (list(params.where).length) {
      refuse("A bundle cannot look for conditions.", "Remove them, or open the cube itself: evalcube explore CUBE");
    }
    const among = (wanted, ...values) => !wanted.length || values.some((value) => wanted.includes(value));
    const mine = groups.filter((one) => among(models, one.label) && among(tasks, one.task));
    if (mine.length > MOST_FILES) {
      refuse("There are too many trials here to be shown together.", "Choose models or tasks.");
    }
    const rows = async (group) => (await load(`rows?${group.name}`)).map((row) => ({ ...row, group }));
    const found = await Promise.all(mine.map(rows));
    return found.flat().filter((row) => among(status, row.status) && among(tiers, ...row.tiers));
  };

  const order = (rows, sort) => {
    const key = sort.replace(/^-/, "");
    if (!key) return rows;
    const sign = sort.startsWith("-") ? -1 : 1;
    return [...rows].sort(({ [key]: left }, { [key]: right }) => {
      if (isAbsent(left) || isAbsent(right)) return isAbsent(left) - isAbsent(right);
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
  };

  const find = async (params, label) => {
    const names = ["asked", "point", "trial", "repeat", "cube"];
    const [task, point, trial, repeat, cube] = names.map((name) => list(params[name])[0]);
    const wanted = point ? sorted(point.startsWith("{") ? point : {}) : null;
    const isMeant = (row) =>
      String(row.trial) === String(trial || 0) && String(row.repeat) === String(repeat || 0) &&
      (wanted === null || sorted(row.params) === wanted);
    const holds = (group) =>
      group.label === label && group.task === task && (cube === undefined || String(group.cube) === cube);
    for (const group of groups.filter(holds)) {
      const row = (await load(`rows?${group.name}`)).find(isMeant);
      if (row) return { ...row, group };
    }
    return null;
  };

  const needed = async (params) =>
    (await find(params, list(params.evaluation)[0])) ||
    refuse("This bundle does not hold that trial.", "Its cube does: evalcube explore CUBE");

  const column = (kind) => (name) => ({ name, kind, source: "cube", meaning: "" });
  const COLUMNS = [
    ...["tokens", "latency", "difficulty"].map(column("number")),
    ...["reference", "answer"].map(column("text")),
  ];

  explorer.bundled = {
    async trials(params) {
      const rows = order(await rowsOf(params), String(list(params.sort)[0] || ""));
      const offset = Number(params.offset) || 0;
      const limit = Number(params.limit) || 50;
      return {
        columns: COLUMNS,
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
      const answered = groups.filter((one) => one.task === task).map((one) => one.label);
      const labels = [...new Set(answered)].slice(0, MOST_FILES);
      const found = await Promise.all(labels.map((label) => find({ ...params, cube: [] }, label)));
      return {
        rows: found.filter(Boolean).map(({ label, cube, status, tokens }) => ({ label, cube, status, tokens })),
      };
    },
  };
}
