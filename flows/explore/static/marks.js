"use strict";
// How the charts of "Where it breaks" mark: colours of models and of shares, names and numbers on axes, legends.
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

  /** The head of a panel: its title, and a few words on what it holds. */
  explorer.heading = (title, words) => h("h2", {}, title, " ", h("span.status", {}, words));

  /** Where a legend stands: above the chart, whatever its height. */
  explorer.LEGEND = { orientation: "h", y: 1.02, yanchor: "bottom" };

  /** The marker of bars that are told apart without colours too. */
  explorer.patterned = (color, shape, size = 7) => ({
    color,
    pattern: { shape, fillmode: "overlay", fgcolor: "rgba(255,255,255,0.6)", solidity: 0.2, size },
  });

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
   * Texts of a heat map as a trace of their own: plotly.js itself writes them in white or in a grey that is hard to
   * read. Each cell is {x, y, text, share}; one without a share lies on the page.
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

  /**
   * Levels side by side where several series share them: a small step aside for numbers, so that intervals do not hide
   * each other.
   */
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
}
