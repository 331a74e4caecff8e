"""All that can be asked, by name; the one list that server, bundle and tests go by."""

from __future__ import annotations

from evalcube.flows.errors import SweepError
from evalcube.flows.explore import endings, overview, ranking, trials
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Answerer, Json, Query
from evalcube.flows.read.trials.escaping import jsonable

FAMILIES = (overview, ranking, endings, trials)

ENDPOINTS: dict[str, Answerer] = {one.name: one for family in FAMILIES for one in family.ENDPOINTS}


def ask(explored: Explored, name: str, query: Query) -> Json:
    """The answer of an endpoint, as JSON values."""
    endpoint = ENDPOINTS.get(name)
    if endpoint is None:
        raise SweepError(f"there is no '{name}' to ask for", f"There are: {', '.join(ENDPOINTS)}")

    def answer() -> Json:
        document: Json = jsonable(endpoint.answer(explored, query))
        return document

    return explored.cached((name, query.key), answer) if endpoint.kept else answer()
