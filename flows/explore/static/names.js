"use strict";
// Names that are cut to the room that there is, so that those beside each other stay apart.
{
  /** Characters below which nothing is left to cut. */
  const LEAST = 5;

  const middle = (letters, most) => {
    if (letters.length <= most) return letters;
    const half = Math.max(Math.floor((most - 1) / 2), 1);
    return [...letters.slice(0, half), "…", ...letters.slice(-half)];
  };

  /** How many first letters all have in common. */
  const common = (names) => {
    let count = 0;
    while (names.every((one) => count < one.length && one[count] === names[0][count])) count += 1;
    return count;
  };

  const WORD = /[\p{L}\p{N}.]/u;

  /** So many first letters or fewer, so that no word is parted that begins among them. */
  const toWord = (name, count) => {
    let whole = count;
    while (whole > 0 && WORD.test(name[whole - 1])) whole -= 1;
    return whole;
  };

  /** Names cut before and behind the part in which they differ; null if they have nothing around it in common. */
  const around = (names, most) => {
    const backwards = names.map((one) => [...one].reverse());
    const shortest = Math.min(...names.map((one) => one.length));
    let before = common(names);
    let after = Math.min(common(backwards), shortest - before);
    if (before + after === 0) return null;
    const words = [toWord(names[0], before), toWord(backwards[0], after)];
    if (names.every((one) => one.length - words[0] - words[1] <= most - 2)) [before, after] = words;
    const parts = cut(names.map((one) => one.slice(before, one.length - after)), most - 2);
    return names.map((one, place) => {
      const room = most - 2 - parts[place].length;
      const head = Math.max(Math.min(before, Math.max(Math.ceil(room / 2), room - after)), 0);
      const tail = Math.max(Math.min(after, room - head), 0);
      return [
        ...one.slice(0, head),
        ...(head < before ? ["…"] : []),
        ...parts[place],
        ...(tail < after ? ["…"] : []),
        ...one.slice(one.length - tail),
      ];
    });
  };

  /** Names as lists of letters, each of at most so many. */
  const cut = (names, most) => {
    const short = names.map((one) => middle(one, most));
    if (most < LEAST) return short;
    const put = (places) => {
      const found = places.length > 1 ? around(places.map((place) => names[place]), most) : null;
      found?.forEach((one, place) => {
        short[places[place]] = one;
      });
      return found !== null;
    };
    const long = [...names.keys()].filter((place) => names[place].length > most);
    if (put(long)) return short;
    const alike = new Map();
    for (const place of long) alike.set(short[place].join(""), [...(alike.get(short[place].join("")) || []), place]);
    for (const places of alike.values()) put(places);
    return short;
  };

  /**
   * Different names by themselves, each of at most so many characters and none like another; as they are where that
   * cannot be.
   */
  explorer.shortened = (names, most) => {
    const each = [...new Set(names)];
    const short = cut(each.map((name) => [...name]), most).map((letters) => letters.join(""));
    return new Map(each.map((name, place) => [name, new Set(short).size < each.length ? name : short[place]]));
  };
}
