"use strict";
// The leaderboard as the views of "Ranking" share it: what is asked, what leads it, which rows are meant, controls.
{
  const { h, format } = explorer;
  const IDLE = 4000;
  const SCORES = [["", "score as fits"], ["v1", "score v1"], ["v2", "score v2"]];
  const MODES = [
    ["", "as fits: C_P, or accuracy"],
    ["C_P", "C_P: truncated are wrong"],
    ["C_I", "C_I: truncated left out"],
    ["C_O", "C_O: truncated are right"],
    ["E_P", "E_P: with guesses"],
    ["E_I", "E_I"],
    ["E_O", "E_O"],
  ];
  const UNRANKED = "Grey with a *: without a rank, as it was asked other questions, or not all of them yet. " +
    "Its value cannot be compared with the others.";
  let pending;

  /**
   * Ask for all draws when nobody changes anything, and draw what came.
   *
   * Not at once: with many models all draws keep the server busy for a second or more, in which the next filter would
   * wait.
   */
  const askLater = (page, query) => {
    clearTimeout(pending);
    const here = location.hash;
    pending = setTimeout(async () => {
      if (location.hash !== here) return;
      await page.ask("ranking", query).catch(() => null);
      if (location.hash === here && explorer.has("ranking", query)) explorer.draw();
    }, IDLE);
  };

  /** The leaderboard of the part that is meant: at once with few draws where there are many rows, then with all. */
  const boardOf = async (page) => {
    const query = { ...page.part(), mode: page.get("mode"), score: page.get("score") };
    if (explorer.bundle || explorer.has("ranking", query)) return page.ask("ranking", query);
    const board = await page.ask("ranking", { ...query, quick: "1" });
    if (!board.final) askLater(page, query);
    return board;
  };

  /** The search box that narrows rows by their names and facets as it is typed into. */
  const find = (page) =>
    h("input", {
      id: "find",
      type: "search",
      placeholder: "Find a model …",
      "aria-label": "Find a model",
      value: page.get("find"),
      oninput: (event) => page.set({ find: event.target.value }, { replace: true }),
    });

  /** The rows that the search box and the choice of models leave. */
  const found = (page, rows) => {
    const words = page.get("find").toLowerCase().split(/\s+/).filter(Boolean);
    const models = page.all("model");
    const text = (row) => `${row.label} ${row.model_name} ${Object.values(row.facets).join(" ")}`.toLowerCase();
    const named = (row) => words.every((word) => text(row).includes(word));
    return rows.filter((row) => (!models.length || models.includes(row.label)) && named(row));
  };

  const estimators = (page) => [
    explorer.select(page, "score", SCORES),
    explorer.select(page, "mode", MODES),
  ];

  const notes = (board) => {
    if (board.final && !board.notes.length) return "";
    const working = board.final ? null : h("li", {}, "Intervals are being worked out with more draws.");
    return h("ul.notes", { id: "notes" }, working, board.notes.map((text) => h("li", {}, text)));
  };

  const byScore = (board) => board.lead === "score";

  explorer.board = {
    of: boardOf,
    found,
    notes,
    byScore,
    /** What rows are ordered by: the estimate of a row, its name, and a value of it as text. */
    lead: (board, row) => (byScore(board) ? row.score : row.rate),
    leadName: (board) => (byScore(board) ? "score" : board.rate_name),
    shown: (board, value) => (byScore(board) ? format.number(value, 0) : format.percent(value)),
    leadTitle: (board) => (byScore(board) ? "ReasonScore" : `${board.rate_name}, %`),
    controls: (page, ...more) =>
      explorer.filters(page, { models: true }, find(page), ...(explorer.bundle ? [] : estimators(page)), ...more),
    extent: (values) => {
      const there = values.filter(format.isNumber);
      return there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
    },
    /** Error bars of estimates, in per cent for shares. */
    errors: (estimates, share) => ({
      type: "data",
      symmetric: false,
      thickness: 1.2,
      width: 0,
      array: estimates.map((one) => (one.upper - one.value) * (share ? 100 : 1)),
      arrayminus: estimates.map((one) => (one.value - one.lower) * (share ? 100 : 1)),
    }),
    /** What a chart says below itself of evaluations without a rank; null if it shows none. */
    unrankedNote: (rows) => (rows.some((row) => row.rank === null) ? UNRANKED : null),
  };
}
