"""Independent solvers of the story tasks: the prompt text in, the answer out; no code of the generators.

The calendar is counted day by day here, without the library that the generators use.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# ---- cars


def lineup(prompt: str) -> tuple[list[str], dict[str, str]]:
    """Colors from front to back, and the color of each car by every way to name it."""
    listed = re.search(r"(?:they are|of the line|the line is): ([^.]+)\.", prompt)
    assert listed
    line: list[str] = []
    known: dict[str, str] = {}
    for entry in listed[1].split(", "):
        told = re.fullmatch(r"an? (\w+) (\w+) driven by (\w+)", entry)
        if told:
            color, body, driver = told.groups()
            known |= {f"the {body}": color, f"{driver}'s car": color}
        else:
            color = entry
        known[f"the {color} car"] = color
        line.append(color)
    return line, known


CAR = r"([Tt]he \w+ car|[Tt]he \w+|[A-Z]\w+'s car)"


def play(line: list[str], known: dict[str, str], event: str) -> list[str]:
    """The line after one event."""

    def car(text: str) -> str:
        return known[text[0].lower() + text[1:] if text.startswith("The ") else text]

    def without(gone: str) -> list[str]:
        return [one for one in line if one != gone]

    def placed(moved: str, place: int) -> list[str]:
        rest = without(moved)
        return [*rest[: place - 1], moved, *rest[place - 1 :]]

    if m := re.fullmatch(
        r"The cars in positions? (\d+) and (?:position )?(\d+) (?:swap|trade) places\.", event
    ):
        one, other = line[int(m[1]) - 1], line[int(m[2]) - 1]
        return [{one: other, other: one}.get(each, each) for each in line]
    if m := re.fullmatch(
        r"(?:The car in position (\d+)|From position (\d+), a car) moves to position (\d+)\.", event
    ):
        return placed(line[int(m[1] or m[2]) - 1], int(m[3]))
    if m := re.fullmatch(rf"{CAR} (?:moves|drives over) to position (\d+)\.", event):
        return placed(car(m[1]), int(m[2]))
    if m := re.fullmatch(rf"{CAR} (?:moves|goes) (\d+) places? (back|forward)(?: in the line)?\.", event):
        steps = int(m[2]) if m[3] == "back" else -int(m[2])
        place = line.index(car(m[1])) + 1 + steps
        assert 1 <= place <= len(line)
        return placed(car(m[1]), place)
    if m := re.fullmatch(rf"{CAR} (?:swaps places with|and) {CAR}(?: trade places)?\.", event):
        one, other = car(m[1]), car(m[2])
        return [{one: other, other: one}.get(each, each) for each in line]
    if m := re.fullmatch(rf"{CAR} .*(directly|right) (behind|ahead of|in front of) {CAR}\.", event):
        moved, neighbor = car(m[1]), car(m[4])
        pair = [neighbor, moved] if m[3] == "behind" else [moved, neighbor]
        return [each for one in without(moved) for each in (pair if one == neighbor else [one])]
    assert re.search("honks|flashes|nearly|gets out|windows|rain", event), event
    return line


def solve_cars(prompt: str) -> str:
    line, known = lineup(prompt)
    _, _, *events, question, _ = prompt.splitlines()
    for event in events:
        line = play(line, known, event)
    asked = re.search(r"car (?:now |that stands )?in position (\d+)", question)
    if asked:
        return line[int(asked[1]) - 1]
    named = re.search(rf"(?:position is|position of|does) {CAR}", question)
    assert named
    return str(line.index(known[named[1]]) + 1)


# ---- movies

GENRE_WORDS = {
    "western": "sheriff|gunslingers|Cowboys|stagecoach|ranch",
    "science fiction": "starship|Mars|time machine|galaxy|androids",
    "horror": "haunted|vampire|cemetery|cursed doll|Zombies",
    "romance": "fall in love|secret admirer|kiss|loses her heart|couple courts",
    "war": "soldiers|bomber|battlefield|Infantry|submarine",
    "musical": "sing|song|show tune",
    "sports": "boxer|basketball|marathon|soccer|swimmer",
    "detective": "private eye|inspector|detective|alibi|sleuth",
    "fantasy": "wizard|Elves|sorceress|trolls|fairy",
    "heist": "vault|safecracker|Burglars|con artists|pickpocket",
}
THEME_WORDS = {
    "revenge": "killers pay|get even|vengeance|payback|hunts down",
    "betrayal": "sold out|broken behind|traitor|double-cross|other side",
    "sacrifice": "gives up everything|lays down|to save the rest|selfless|takes the blow",
    "greed": "whole fortune|hunger for money|more they own|miser|Riches",
    "survival": "stay alive|last through|one more day|castaways|perish",
    "friendship": "best friends|old pals|buddies|chums|Companions",
    "growing up": "teenager|childhood|boy of fifteen|girl's first|comes of age",
    "forgiveness": "make peace|pardoned|forgive you|reconciliation|begs for pardon",
    "jealousy": "gifted sibling|rival|green with envy|jealous|begrudges",
    "freedom": "chains|captivity|to be free|liberty|throw off",
}


def named(text: str, table: dict[str, str]) -> str:
    (found,) = [name for name, words in table.items() if re.search(rf"\b(?:{words})", text)]
    return found


def film(line: str) -> tuple[str, tuple[str, str]]:
    """Title, and genre and theme as the description shows them."""
    told = re.fullmatch(r"- ([^:(]+?)(?: \((.+); (.+)\))?: ([^.]+\.) (.+)", line)
    assert told, line
    title, genre, theme, setting, plot = told.groups()
    seen = named(setting, GENRE_WORDS), named(plot, THEME_WORDS)
    assert (genre, theme) in {seen, (None, None)}, line
    return title, seen


def solve_movies(prompt: str) -> str:
    liked, offered = prompt.split("\n\n")[:2]
    (wanted,) = {film(line)[1] for line in liked.splitlines()[1:]}
    (answer,) = [title for title, kind in map(film, offered.splitlines()[1:]) if kind == wanted]
    return answer


# ---- dates

NAMES_OF_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
NAMES_OF_DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
Day = tuple[int, int, int]


def length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def step(day: Day, count: int) -> Day:
    """So many days later or earlier, one day at a time."""
    y, m, d = day
    for _ in range(abs(count)):
        d += 1 if count > 0 else -1
        if d < 1:
            y, m = (y, m - 1) if m > 1 else (y - 1, 12)
            d = length(y, m)
        elif d > length(y, m):
            y, m, d = (y, m + 1, 1) if m < 12 else (y + 1, 1, 1)
    return y, m, d


def step_months(day: Day, count: int) -> Day:
    y, m, d = day
    for _ in range(abs(count)):
        if count > 0:
            y, m = (y, m + 1) if m < 12 else (y + 1, 1)
        else:
            y, m = (y, m - 1) if m > 1 else (y - 1, 12)
    return y, m, min(d, length(y, m))


def name_of_day(day: Day) -> str:
    """Sakamoto's rule."""
    y, m, d = day
    y -= m < 3
    return NAMES_OF_DAYS[
        (y + y // 4 - y // 100 + y // 400 + (0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4)[m - 1] + d) % 7
    ]


def walk(day: Day, wanted: Callable[[Day], bool], count: int) -> Day:
    """The count-th day after (before, if negative) that is as wanted."""
    found = 0
    while found < abs(count):
        day = step(day, 1 if count > 0 else -1)
        found += wanted(day)
    return day


def walk_to(day: Day, weekday: str, count: int) -> Day:
    return walk(day, lambda one: name_of_day(one) == weekday, count)


def at_work(day: Day) -> bool:
    return name_of_day(day) not in ("Saturday", "Sunday")


def stated_date(prompt: str) -> Day:
    """The only date in the text, in any of its formats."""
    story = prompt.rsplit("\n", 1)[0]
    found: list[Day] = [(int(y), int(m), int(d)) for y, m, d in re.findall(r"(\d{4})-(\d\d)-(\d\d)", story)]
    found += [(int(y), int(m), int(d)) for m, d, y in re.findall(r"(\d\d)/(\d\d)/(\d{4})", story)]
    found += [(int(y), int(m), int(d)) for d, m, y in re.findall(r"(\d\d)\.(\d\d)\.(\d{4})", story)]
    for name, d, y in re.findall(r"([A-Z][a-z]+) (\d{1,2}), (\d{4})", story):
        found.append((int(y), NAMES_OF_MONTHS.index(name[:3].lower()) + 1, int(d)))
    for d, name, y in re.findall(r"(\d{1,2}) ([A-Z][a-z]+) (\d{4})", story):
        found.append((int(y), NAMES_OF_MONTHS.index(name[:3].lower()) + 1, int(d)))
    assert ("month/day/year" in story) == bool(re.search(r"\d/\d", story))
    assert ("day.month.year" in story) == bool(re.search(r"\d\.\d", story))
    (day,) = found
    return day


ORDER = {"first": 1, "second": 2, "third": 3, "fourth": 4}


def today(prompt: str) -> Day:
    """Today, from the stated date."""
    day = stated_date(prompt)
    if re.match(r"(\(.*?\) )?(Yesterday|The date of yesterday)", prompt):
        return step(day, 1)
    if re.match(r"(\(.*?\) )?(Tomorrow|The date of tomorrow)", prompt):
        return step(day, -1)
    before = re.search(r"(\d+) days ago(?: it|, the date) was", prompt)
    return step(day, int(before[1])) if before else day


def number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None


def in_later_month(story: str, now: Day) -> Day | None:
    """Some day of a month that is named by its distance."""
    count = number(r"(\d+) months? after th(?:is|e current) month", story)
    if count is None:
        return None
    y, m, _ = step_months((now[0], now[1], 1), count)
    if "its last day" in story or "the last day of" in story:
        return y, m, length(y, m)
    told = re.search(r"\b(first|second|third|fourth|last) (\w+day)", story)
    assert told
    fitting = [(y, m, d) for d in range(1, length(y, m) + 1) if name_of_day((y, m, d)) == told[2]]
    return fitting[-1 if told[1] == "last" else ORDER[told[1]] - 1]


def several_steps(story: str, now: Day) -> Day | None:
    if told := re.search(r"second (\w+day) after today", story):
        count = number(r"(\d+) days? after (?:the arrival|that start)", story)
        assert count is not None
        return step(walk_to(now, told[1], 2), count)
    if told := re.search(r"in (\d+) days?\. .*?(\d+) weeks before.*?(\d+) days? after", story):
        return step(step(step(now, int(told[1])), -7 * int(told[2])), int(told[3]))
    if told := re.search(r"every (?:(\d+) )?days?\b.* number (\d+)\.", story):
        return step(now, int(told[1] or 1) * (int(told[2]) - 1))
    if told := re.search(r"(\d+) weeks? and (\d+) days", story):
        return step(now, 7 * int(told[1]) + int(told[2]))
    if told := re.search(r"[Ii]n (\d+) months?,.* (\d+) days (?:after that|later)", story):
        return step(step_months(now, int(told[1])), int(told[2]))
    return None


def by_weekday(story: str, now: Day) -> Day | None:
    back = -1 if re.search(r"backwards|past|was \d+ working|working days? ago", story) else 1
    if told := re.search(r"on (\w+day) number (\d+)", story):
        return walk_to(now, told[1], back * int(told[2]))
    count = number(r"(\d+) working days?", story)
    return None if count is None else walk(now, at_work, back * count)


def solve_dates(prompt: str) -> str:
    now = today(prompt)
    if told := re.search(r"(?:Today is|It is) (\w+day), ", prompt):
        assert name_of_day(now) == told[1], prompt
    story = re.sub(r"\(.*?\)|\d+ days ago(?: it|, the date) was", "", prompt.rsplit("\n", 2)[0])
    y, m, d = (
        in_later_month(story, now) or several_steps(story, now) or by_weekday(story, now) or plain(story, now)
    )
    return f"{y}-{m:02}-{d:02}"


def plain(story: str, now: Day) -> Day:
    """One count of days, weeks, months or years."""
    if count := number(r"on day (\d+)", story):
        return step(now, count - 1)
    ((text, unit),) = re.findall(r"\b(\d+) (day|week|month|year)s?\b", story)
    count = int(text) if not re.search(r"\bago\b|earlier|before today", story) else -int(text)
    if unit in ("day", "week"):
        return step(now, count * (7 if unit == "week" else 1))
    return step_months(now, count * (12 if unit == "year" else 1))


STORY_SOLVERS: dict[str, Callable[[str], str]] = {
    "cars": solve_cars,
    "dates": solve_dates,
    "movies": solve_movies,
}
