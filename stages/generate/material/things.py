"""Things for the task `objects`: groups with their plurals, adjectives that suit them all, numbers in words.

The lists are part of every prompt: a changed list means a raised ``version`` of each task that uses it.
"""

from __future__ import annotations

_IN_OES = frozenset({"mango", "mosquito", "potato"})
_IN_VES = frozenset({"scarf"})


def plural(noun: str) -> str:
    """The regular English plural of a noun of the lists below.

    Examples
    --------
    >>> plural("cherry"), plural("peach"), plural("potato"), plural("piano"), plural("donkey")
    ('cherries', 'peaches', 'potatoes', 'pianos', 'donkeys')
    """
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun in _IN_VES:
        return f"{noun[:-1]}ves"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) or noun in _IN_OES else f"{noun}s"


def _things(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((noun, plural(noun)) for noun in text.split())


GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "fruits": _things(
        "apple apricot banana cherry fig grapefruit lemon mango nectarine peach pear pineapple plum tangerine"
    ),
    "vegetables": _things(
        "artichoke beetroot cabbage carrot cauliflower leek lettuce onion parsnip potato radish shallot turnip"
        " yam"
    ),
    "mammals": _things(
        "camel cat cow dog donkey fox giraffe goat hamster hedgehog horse pig rabbit squirrel"
    ),
    "birds": _things(
        "duck eagle flamingo ostrich owl parrot pelican penguin pigeon raven seagull sparrow swan woodpecker"
    ),
    "insects": _things(
        "ant bee beetle bumblebee butterfly cockroach dragonfly firefly grasshopper hornet locust mosquito"
        " moth wasp"
    ),
    "musical instruments": _things(
        "accordion banjo cello clarinet drum flute guitar harp oboe piano saxophone trombone trumpet violin"
    ),
    "tools": _things(
        "axe chainsaw chisel crowbar hammer hoe mallet pickaxe rake saw screwdriver shovel trowel wrench"
    ),
    "pieces of clothing": _things(
        "blouse cardigan coat dress glove hat jacket raincoat scarf shirt skirt sock sweater vest"
    ),
    "pieces of furniture": _things(
        "armchair bed bench bookcase chair couch cupboard desk dresser nightstand sideboard stool table"
        " wardrobe"
    ),
    "vehicles": _things(
        "ambulance bicycle bus car lorry minivan motorcycle scooter taxi tractor train tram truck van"
    ),
    "flowers": _things(
        "begonia carnation daffodil dahlia daisy hyacinth lily marigold orchid petunia poppy rose sunflower"
        " tulip"
    ),
}
"""Name of a group -> its things, singular and plural. No thing belongs to two groups."""

ADJECTIVES = tuple(
    """
    amusing beautiful big black blue bright brown colourful crooked curious dark dirty elegant faded funny
    green grey heavy large light little lovely muddy neat odd ordinary pale pink plain pretty purple red
    shiny small spotted strange striped tall tiny ugly unusual white yellow
    """.split()
)
"""Adjectives that suit any of the things and name none of them."""

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()

NUMBERS = (*_UNITS, *(ten if not n else f"{ten}-{_UNITS[n]}" for ten in _TENS for n in range(10)))
"""Number words, from zero to ninety-nine."""
