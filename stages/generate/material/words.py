"""What several tasks share: ordinary English words, first names, things to hold, and the ends of prompts.

The lists are part of every prompt: a changed list means a raised ``version`` of each task that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


WORDS = _listed(
    """
    act air ant arm art axe bag bee big box bus cab cat cow cup day dog dry ear egg elm eye fan far fig
    fly fog fox fun gem hat hen ice ink jam jar jet jog joy key kit lid log map mix mud net nut oak oil
    old one owl pen pie pig pot ram raw red run sea sky sun tax tea toy van wax web wet win yak zip zoo
    acid army atom aunt axis back bank bark bath bean bell bird blue boat bold bone book bowl bulb calm
    camp cave city clay club coin cold cook crab dawn deer desk dish door dove down drum duck dusk dust
    easy echo exit face fact farm film fish five flag flax foam fork frog gate gift glow goat gold hand
    harp hawk haze high hill home hook iron item jazz joke jump just keen kind king kite knee lake lamb
    leaf lime lion lynx maze milk mint moon moth myth navy neck next oval oven pack palm park path plum
    pond quay quit quiz rain ring road rock roof rope salt sand seed ship shoe silk snow soap song soup
    star swim taxi tent text tree tusk vase view vine walk wall warm wave west wind wolf wood wool yard
    yarn year zero zest zinc zone album amber angle apple arrow attic azure badge baker basin beach
    berry black blend bloom board brave bread brick brook brush cabin cable camel candy chair chalk
    charm chess chief clerk cliff cloud clown coast comet coral crazy crown crypt curve daisy dance
    dozen dream eagle earth eight elbow equal extra fairy fence field flame flock floor flute frost
    fruit ghost giant glass globe grain grape grass green guest hazel heart honey horse hotel house
    index ivory jewel joint judge juice kayak knife lemon light linen lunch lyric major maple march
    medal melon metal model money month mouse music night north nymph ocean olive onion opera orbit
    otter ounce oxide paint paper peach pearl piano pilot pizza plant plaza prize proud queen quick
    quiet quilt quote radio ranch raven relax river robin round salad sauce scarf shark sheep shelf
    shore sixty skill skull smile snail space spoon spray stone storm sugar swamp sweet table tiger
    toast topaz torch tower train truck trunk tulip uncle vivid voice wagon waltz water whale wheat
    wheel world young youth zebra acorns anchor animal arctic autumn badger bakery banana barrel basket
    beaver blazer bonnet bottle branch breeze bridge bright bronze bubble bucket butter button cactus
    candle canyon carbon carpet carrot castle cattle cellar cherry church circle clover cobalt coffee
    copper corner cotton cousin coyote crayon dinner dollar donkey dragon engine fabric falcon family
    farmer ferret filter flower forest fossil freeze frozen galaxy garage garden garlic ginger glider
    goblet golden guitar hammer harbor helmet hollow hybrid island jacket jaguar jigsaw jungle kettle
    kidney kitten ladder lagoon laptop lizard magnet marble market meadow mirror monkey mosaic mosque
    muffin museum needle nickel number nutmeg orange orchid oxygen oyster paddle parrot pencil pepper
    pickle pigeon pillow planet pocket potato puddle puzzle python rabbit ribbon rocket saddle salmon
    school shadow shrimp silver singer sketch spider spiral spirit square squash statue street summer
    sunset syntax tablet teapot temple thirty throat ticket timber tomato tongue travel tunnel turkey
    turtle valley velvet violet violin walnut walrus weasel whisky window winter wizard yellow zenith
    zigzag zipper account airport antique apricot archive article balcony balloon bandage banquet
    baptize battery bazaars bedroom bicycle biscuit blanket boulder bracket cabinet caravan cartoon
    cathode ceramic chamber chapter charity chemist chicken chimney citizen clarify climate compass
    concert cottage country crystal cushion cyclone dentist diamond dolphin drawing eclipse elegant
    emerald equinox evening explore farming fashion feather firefly flannel foxhole freezer gallery
    gazelle general giraffe glacier gravity grocery habitat haircut harvest history horizon hundred
    iceberg insects jasmine jewelry journal journey justice kitchen lantern leather leopard lettuce
    library lobster machine mailbox meadows mixture monarch morning musical mustard nothing oatmeal
    octopus orchard origami ostrich oxidize painter panther parquet peacock penguin perfume picture
    pilgrim pioneer plastic popcorn pottery prairie puzzles pyramid quality quarter quickly raccoon
    railway rainbow rooster saffron sailing sandbox science seafood sixteen sparrow spinach sponges
    stadium station stomach sunrise teacher theatre thunder tornado traffic trumpet turnips vanilla
    village vinegar volcano voyager walking warbler weather whisper windows absolute academic aircraft
    airplane alphabet antelope backpack baseball basement bluebird boundary building business calendar
    campfire cardinal carnival ceremony charcoal children chipmunk cinnamon cocktail computer corridor
    crescent cucumber customer daffodil daughter december dialogue dinosaur dominoes dynamite electric
    elephant envelope equation estimate exchange exercise explorer february festival firewood flamingo
    football fountain freezing function gigantic glossary goldfish graffiti graphite hazelnut headlamp
    hedgehog highland hospital hydrogen inkwells juggling junction kangaroo keyboard kilowatt lavender
    lemonade lollipop magazine mahogany marathon maximize mosquito mountain mushroom mystique necklace
    notebook obsidian offshore outdoors oxymoron painting paradise passport pavilion peaceful pendulum
    pinwheel platinum porridge postcard quantity question railroad raindrop reindeer remember sandwich
    sapphire scissors seahorse sentence shepherd skeleton snowball software squirrel starfish stopping
    strategy suitcase sunlight swimming syllable symphony tapestry teaspoon tortoise treasure triangle
    umbrella universe vacation vineyard volcanic windmill workshop yearbook adventure alligator
    apartment architect asparagus astronaut avalanche beautiful blueprint breakfast butterfly candidate
    carpenter celebrate champagne chocolate classroom clockwork coastline community companion crocodile
    delicious dishcloth driftwood education equalizer excellent exquisite fireplace freestyle geography
    grapevine gymnastic hairbrush happiness harmonica hexagonal horseback hurricane important invention
    jackknife jellyfish knowledge landscape lifeguard limestone marmalade mechanics microwave nightfall
    orchestra parachute passenger penthouse pineapple porcupine president quicksand raspberry rectangle
    saxophone scarecrow spaghetti spotlight squeezing storybook submarine sunflower tangerine telephone
    telescope thickness turquoise vegetable waterfall whirlpool wholesale xylophone yachtsman zookeeper
    zoologist accordions adjectives afterwards antarctica assemblage background basketball blackberry
    blacksmith brainstorm calculator camouflage candlewick chandelier chimpanzee cloudburst collection
    copyrights dictionary earthquake electrical embroidery equatorial everything experiment expression
    floodlight friendship goldsmiths graduation greenhouse helicopter horizontal impossible instrument
    jackrabbit journalist laboratory lighthouse locomotive management meadowlark millennium moonlights
    nightshift paintbrush percussion phenomenon pickpocket playground population quadruplet quarantine
    quintuplet reflection restaurant rhinoceros scoreboard silhouette skyscraper snowflakes strawberry
    television thunderous toothbrush trampoline trapezoids understudy underwater university vocabulary
    volleyball watercolor watermelon waterwheel wavelength woodpecker workaholic agriculture blackboards
    caterpillar celebration certificate citizenship coffeehouse combination commonplace countryside
    crystallize electricity examination exploration fingerprint firefighter floorboards fluorescent
    gingerbread goalkeepers grasshopper honeysuckle humidifiers hummingbird hydroponics imagination
    independent intelligent lighthouses marketplace mathematics measurement microphones nightingale
    observatory orthography partnership personality photography pomegranate programming proposition
    questioning quizmasters rattlesnake refrigerate screwdriver springboard stockholder storyteller
    superficial switchboard temperature thermometer trombonists ventilation wheelbarrow windbreaker
    woodcutting woodworking xylophonist acceleration accumulation announcement architecture blackcurrant
    breakthrough butterscotch championship conservation construction conversation dictionaries
    encyclopedia exaggeration experimental firecrackers grandmothers handkerchief harpsichords
    headmistress headquarters horsemanship illustration introduction kindergarten laboratories
    marketplaces metropolitan mouthwashing neighborhood nevertheless northeastern organization
    photographer refrigerator relationship sharpshooter shuttlecocks significance stratosphere
    subconscious thanksgiving toothbrushes trigonometry troubleshoot wheelbarrows
    """
)
"""Lower-case words of 3 to 12 letters, by length; every letter of the alphabet occurs."""

NAMES = _listed(
    """
    Adam Aisha Alice Amir Anna Bella Boris Carla Chen Clara Daniel Dora Elena Emil Erik Fatima Felix
    Fiona Greta Hana Hugo Ines Ivan Jamal Jonas Julia Karim Kenji Laura Leo Lina Marco Maria Mona Nadia
    Nils Nora Olga Omar Oscar Paula Pedro Priya Quinn Ravi Rosa Samir Sofia Tara Theo Tomas Uma Vera
    Viktor Wanda Yara Yusuf Zoe
    """
)
"""First names that are not also common words."""

ITEMS = _listed(
    """
    accordion apple banjo basket blanket bottle bucket candle carrot coin compass cupcake cushion drum
    envelope feather flute guitar hammer hat jacket kettle kite ladder lamp lantern lemon magnet marble
    melon mirror mug necklace notebook pencil pillow pineapple potato pumpkin ribbon scarf seashell
    spoon suitcase sweater sword teapot telescope tomato trumpet umbrella vase violin wallet whistle
    """
)
"""Things that one person can hold; single words that ordinary prose seldom uses for anything else."""


def with_article(noun: str) -> str:
    """The noun with "a" or "an", by its first letter.

    Examples
    --------
    >>> with_article("apple"), with_article("drum")
    ('an apple', 'a drum')
    """
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def joined(items: Sequence[str]) -> str:
    """Texts with commas between them, and "and" before the last one."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def closings(form: str, third: str = "Give it on a last line of its own:") -> tuple[str, str, str]:
    """Ends of a prompt that ask for an answer line of a form, the last one in words of the task."""
    asked = ("End with a last line of the form", "Finish with one line that reads", third)
    first, second, last = (f"{words}\nAnswer: {form}" for words in asked)
    return first, second, last
