"use strict";
// How numbers are shown: the same everywhere.
{
  const absent = "–";
  const plain = new Intl.NumberFormat("en-GB");
  const isNumber = value => typeof value === "number" && Number.isFinite(value);

  explorer.format = {
    absent,
    isNumber,
    /** A number with so many decimals; 4 significant digits without. */
    number(value, decimals) {
      if (!isNumber(value)) return absent;
      if (decimals === 0) return plain.format(Math.round(value));
      if (decimals !== undefined) return value.toFixed(decimals);
      if (Number.isInteger(value)) return plain.format(value);
      return Math.abs(value) >= 1000 ? plain.format(Math.round(value)) : String(Number(value.toPrecision(4)));
    },
    /** A share as a percentage. */
    percent: (value, decimals = 1) => (isNumber(value) ? `${(100 * value).toFixed(decimals)} %` : absent),
    /** An estimate's interval: "61.2 – 70.4 %". */
    interval(estimate, share = true) {
      if (!estimate || !isNumber(estimate.lower) || !isNumber(estimate.upper)) return absent;
      const [low, high] = share ? [100 * estimate.lower, 100 * estimate.upper] : [estimate.lower, estimate.upper];
      const text = value => (share ? value.toFixed(1) : value.toFixed(0));
      return `${text(low)} – ${text(high)}${share ? " %" : ""}`;
    },
    seconds(value) {
      if (!isNumber(value)) return absent;
      if (value < 1) return `${Number((1000 * value).toPrecision(2))} ms`;
      return `${value < 10 ? value.toFixed(1) : plain.format(Math.round(value))} s`;
    },
    money: value => (isNumber(value) ? `$${value < 1 ? value.toPrecision(2) : value.toFixed(2)}` : absent),
    /** Facets and parameters by their plain names. */
    plain: name => name.replace(/^(facet|param)_/, "").replaceAll("_", " "),
    params: params => Object.entries(params).map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`).join(", "),
  };
}
