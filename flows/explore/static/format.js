"use strict";
// How numbers are shown: the same everywhere.
{
  const absent = "–";
  const plain = new Intl.NumberFormat("en-GB");
  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  /** A number with so many decimals, as Python prints it: halves that it has exactly go to the even digit, not up. */
  const fixed = (value, decimals) => {
    const halves = 2 * Math.abs(value) * 10 ** decimals;
    // Most numbers are near no half.
    if (Math.abs(halves - Math.round(halves)) > 1e-9 * Math.max(halves, 1)) return value.toFixed(decimals);
    // A hundred decimals tell an exact half from what is merely near one.
    const [whole, fraction] = Math.abs(value).toFixed(100).split(".");
    const kept = decimals ? `${whole}.${fraction?.slice(0, decimals)}` : whole;
    if (!/^50*$/.test(fraction?.slice(decimals) ?? "") || !/[02468]$/.test(kept)) return value.toFixed(decimals);
    return value < 0 ? `-${kept}` : kept;
  };

  /** A number with so many significant digits, rounded as `fixed` does. */
  const precise = (value, digits) => {
    const decimals = digits - 1 - Number(value.toExponential().split("e")[1]);
    return decimals < 0 || decimals > 90 ? Number(value.toPrecision(digits)) : Number(fixed(value, decimals));
  };

  const whole = (value) => plain.format(Number(fixed(value, 0)));

  explorer.format = {
    fixed,
    absent,
    isNumber,
    /** A number with so many decimals; 4 significant digits without. */
    number(value, decimals) {
      if (!isNumber(value)) return absent;
      if (decimals === 0) return whole(value);
      if (decimals !== undefined) return fixed(value, decimals);
      if (Number.isInteger(value)) return plain.format(value);
      return Math.abs(value) >= 1000 ? whole(value) : String(precise(value, 4));
    },
    /** A share as a percentage. */
    percent: (value, decimals = 1) => (isNumber(value) ? `${fixed(100 * value, decimals)}%` : absent),
    /** An estimate's interval: "61.2 – 70.4%". */
    interval(estimate, share = true) {
      if (!estimate || !isNumber(estimate.lower) || !isNumber(estimate.upper)) return absent;
      const [low, high] = share ? [100 * estimate.lower, 100 * estimate.upper] : [estimate.lower, estimate.upper];
      const text = (value) => fixed(value, share ? 1 : 0);
      return `${text(low)} – ${text(high)}${share ? "%" : ""}`;
    },
    seconds(value) {
      if (!isNumber(value)) return absent;
      if (value < 1) return `${precise(1000 * value, 2)} ms`;
      return `${value < 10 ? fixed(value, 1) : whole(value)} s`;
    },
    money: (
      value,
    ) => (isNumber(value) ? `$${value === 0 ? "0" : value < 1 ? value.toPrecision(2) : fixed(value, 2)}` : absent),
    /** Facets and parameters by their plain names. */
    plain: (name) => name.replace(/^(facet|param)_/, "").replaceAll("_", " "),
    params: (params) =>
      Object.entries(params).map(([name, value]) =>
        `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`
      ).join(", "),
  };
}
