"""A catalogue of invented films for the task `movies`: titles, and sentences that show a genre or a theme.

The lists are part of every prompt: a changed list means a raised ``version`` of the task `movies`.
"""

from __future__ import annotations


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


TITLES = _lines(
    """
    Amber Causeway
    Apricot Parade
    Barley Moon
    Bells of Orrin
    Beyond the Ninth Gate
    Borrowed Thunder
    Broken Weathervane
    Candles for Ilsa
    Cinder and Salt
    Clockmaker Sunday
    Cold Lanterns
    Copper Meridian
    Crooked Orchard
    Daughters of Marrow Hill
    Dovetail Station
    Eleven Umbrellas
    Empty Carousel
    Falling Upstairs
    Farewell to Quillon
    Fathom Street
    Feathers in the Well
    Gravel and Honey
    Halfway to Corbin
    Harbor of Glass
    Hollow Almanac
    House of Thimbles
    Ink on the Ceiling
    Ivory Turnpike
    January Kites
    Juniper Crossing
    Kettle of Stars
    Lamplight Avenue
    Last Bus to Verity
    Letters from Osmund
    Little Avalanche
    Long Road to Pell
    Magpie Season
    Marble Tide
    Midnight at Lowell
    Mirrors of Tamsin
    Narrow Bridges
    Night of the Heron
    North of Yesterday
    October Ladder
    Old Paper Moons
    Paper Lighthouse
    Pepper and Pine
    Quiet as Copper
    Quilted Sky
    Rain over Dunmore
    Return to Sable Point
    Rust and Ribbons
    Scarlet Ledger
    Seven Short Winters
    Shadow of the Mill
    Silver Postman
    Six Miles of Velvet
    Sparrow Tax
    Stairs to Nowhere
    Stone Harmonica
    Tangled Compass
    Thirteen Acres
    Tin Whistle Summer
    Tomorrow Almond
    Twilight Cartographers
    Under the Plaster Sun
    Velvet Anvil
    Waiting for Marigold
    Whistle Past Dawn
    Wicker Kingdom
    Windmill Blues
    Yellow Door Society
    """
)
"""Titles that give away neither genre nor theme; none is part of another."""

GENRES = {
    "western": _lines(
        """
        A sheriff keeps watch over a dusty cattle town.
        Two gunslingers share a saloon in the desert.
        Cowboys drive a herd across open prairie.
        A stagecoach rolls into a silver-mining town of the Old West.
        A ranch hand rides from one frontier fort to the next.
        """
    ),
    "science fiction": _lines(
        """
        The crew of a starship orbits an unknown planet.
        In a colony on Mars, robots do all the work.
        A time machine is tested in a laboratory of the year 2300.
        Visitors from another galaxy land beside a space station.
        An engineer repairs androids on a moon of Saturn.
        """
    ),
    "horror": _lines(
        """
        A haunted mansion creaks, and something crawls behind its walls.
        A vampire leaves its crypt every night.
        Visitors to a village cemetery hear the dead scratch at their coffins.
        A cursed doll whispers in a dark cellar while blood drips from above.
        Zombies shuffle through an abandoned hospital.
        """
    ),
    "romance": _lines(
        """
        A florist and a baker fall in love over a summer.
        A shy librarian receives love letters from a secret admirer.
        Two strangers kiss on a night train, never to forget each other.
        A wedding planner loses her heart to the best man.
        A couple courts by candlelight in a little cafe.
        """
    ),
    "war": _lines(
        """
        A platoon of soldiers lies in the trenches under shell fire.
        A bomber squadron flies over enemy lines.
        A field medic works on a battlefield between two armies.
        Infantry and tanks advance on an occupied city.
        A submarine hunts enemy convoys and is hunted by destroyers.
        """
    ),
    "musical": _lines(
        """
        Dancers sing their way through a Broadway theater.
        Every conversation in this small town turns into a song and a tap dance.
        A chorus line rehearses one big show tune after another.
        A street singer carries a choir along at each corner.
        On the rooftops, a whole cast sings in harmony.
        """
    ),
    "sports": _lines(
        """
        A boxer trains for the title fight.
        A struggling basketball team reaches its championship final.
        A marathon runner prepares for the Olympic games.
        A soccer coach takes over a hopeless club.
        A swimmer races against the record of her own sister.
        """
    ),
    "detective": _lines(
        """
        A private eye takes on a murder case in a foggy city.
        An inspector questions every guest after a body is found in the library.
        A retired detective collects clues about a vanished painter.
        Fingerprints and a false alibi puzzle a police sergeant.
        An amateur sleuth investigates a poisoning at a tea party.
        """
    ),
    "fantasy": _lines(
        """
        A young wizard rides a dragon over an enchanted forest.
        Elves and dwarves quarrel over a magic sword.
        A sorceress rules a kingdom of unicorns and talking trees.
        A knight carries a spellbook to the castle of the trolls.
        A goblin guards the wishing well of a fairy realm.
        """
    ),
    "heist": _lines(
        """
        A crew of thieves plans to crack the vault of a casino.
        A safecracker and a getaway driver study the floor plan of a bank.
        Burglars dig a tunnel to a museum of diamonds.
        A gang of con artists sets out to rob an armored train.
        A pickpocket recruits a team to steal a painting past laser alarms.
        """
    ),
}
"""Sentences about the setting, by genre; they say nothing about a theme."""

THEMES = {
    "revenge": _lines(
        """
        It tells of someone who swears to make a brother's killers pay.
        At its heart is a vow to get even, however long it takes.
        One of them lives only for vengeance.
        The plot turns on payback for an old wrong.
        A ruined father hunts down, one by one, those who wronged him.
        """
    ),
    "betrayal": _lines(
        """
        Then the oldest of them is found to have sold out everybody else.
        At its heart is a promise of loyalty, broken behind everyone's back.
        Somebody close has been a traitor all along.
        The plot turns on a double-cross by a trusted partner.
        A confidant secretly passes everything on to the other side.
        """
    ),
    "sacrifice": _lines(
        """
        In the end one of them gives up everything so that the others may live.
        At its heart is a mother who lays down her own life for her child.
        Somebody has to stay behind, knowingly, to save the rest.
        The plot turns on a selfless act that costs the hero all.
        A stranger takes the blow meant to hit another.
        """
    ),
    "greed": _lines(
        """
        Soon nobody can get enough, and each wants the whole fortune.
        At its heart is a hunger for money that devours everything else.
        The more they own, the more they want.
        The plot turns on a miser who will not share a single coin.
        Riches are within reach; the longing to have them all ruins everyone.
        """
    ),
    "survival": _lines(
        """
        Cut off from all help, they must stay alive until morning.
        At its heart is a struggle to last through the winter without food.
        With water running out, it is only about living one more day.
        The plot turns on a few castaways who must not starve or freeze.
        Stranded and alone, somebody fights not to perish.
        """
    ),
    "friendship": _lines(
        """
        Two very different people become best friends for life.
        At its heart is the bond of old pals from one street.
        What counts in the end is that the buddies stick together.
        The plot turns on an unlikely pair who end up as chums.
        Companions since school, they always stand by each other.
        """
    ),
    "growing up": _lines(
        """
        A teenager learns to stand on his own feet.
        At its heart is the last summer of childhood.
        A boy of fifteen leaves home and finds out who he is.
        The plot turns on a girl's first steps into adult life.
        Step by step, a sheltered youngster comes of age.
        """
    ),
    "forgiveness": _lines(
        """
        After years of silence, two sisters make peace with each other.
        At its heart is the question whether an old guilt can be pardoned.
        In the end a son finds the words: I forgive you.
        The plot turns on reconciliation between a father and the daughter he hurt.
        Somebody begs for pardon, and slowly receives it.
        """
    ),
    "jealousy": _lines(
        """
        Envy of a more gifted sibling poisons everything.
        At its heart is a rival who cannot bear another's success.
        One of them watches, green with envy, as the other is admired.
        The plot turns on a jealous spouse who suspects everyone.
        Somebody begrudges a colleague every bit of praise.
        """
    ),
    "freedom": _lines(
        """
        Locked up without cause, they dream of breaking their chains.
        At its heart is an escape from captivity.
        One of them will do anything to be free at last.
        The plot turns on an uprising of the oppressed for their liberty.
        Nobody shall own these people any longer: they throw off every master.
        """
    ),
}
"""Sentences about the plot, by theme; they fit any genre."""
