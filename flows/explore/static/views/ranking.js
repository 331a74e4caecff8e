"use strict";
// The first level: the leaderboard.
{
  const { h, format } = explorer;

  const columnsOf = board => {
    const byScore = board.lead === "score";
    const share = (key, title, hint, extra) => ({ key, title, hint, extra, value: row => row[key], show: row => format.percent(row[key]) });
    return [
      { key: "rank", title: "#", value: row => row.rank, show: row => row.rank ?? format.absent, descending: false },
      { key: "label", title: "model", left: true, value: row => row.label },
      { key: "score", title: "score", extra: !byScore, value: row => row.score.value, show: row => format.number(row.score.value, 0) },
      { key: "rate", title: board.mode, value: row => row.rate.value, show: row => format.percent(row.rate.value) },
      { key: "tokens", title: "tokens", value: row => row.tokens_per_trial, show: row => format.number(row.tokens_per_trial, 0) },
      share("truncated", "truncated"),
    ];
  };

  explorer.view({
    name: "ranking", title: "Leaderboard", level: "ranking",
    async render(root, page) {
      const board = await page.ask("ranking", page.part());
      root.append(explorer.filters(page), explorer.table(page, { name: "ranking", columns: columnsOf(board), rows: board.rows, sort: "rank" }));
    },
  });
}
