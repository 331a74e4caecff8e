"""Fields of a sweep's sections: their bounds, both ends included, and what stands where nothing is written."""

from evalcube.flows.config.cluster import ClusterSection
from evalcube.flows.config.judges import JudgeConfig, LayerWeights
from evalcube.flows.config.load import parse_config
from evalcube.flows.config.manifold import AxisWindow
from evalcube.flows.config.models import Model, Prices, SimulatedModel
from evalcube.flows.config.serving import Serve
from evalcube.flows.config.views import ViewConfig
from tests.cases import with_cases
from tests.flows.config.sources import takes, text


def sweep(**fields):
    return parse_config(text(**{name: str(value) for name, value in fields.items()}), "c.yaml")


@with_cases(
    ("section", "rest", "field", "fine", "wrong"),
    [
        (Prices, {"completion": 0}, "prompt", [0, 1e6], [-0.1, 1e6 + 1]),
        (Prices, {"prompt": 0}, "completion", [0, 1e6], [-0.1, 1e6 + 1]),
        (Prices, {"prompt": 1e6, "completion": 0}, "cached", [0, 1e6], [-0.1]),
        (Prices, {"prompt": 1, "completion": 1}, "batch", [0.01, 1], [0, 1.01]),
        (SimulatedModel, {}, "refusal", [0, 1], [-0.1, 1.1]),
        (JudgeConfig, {"model": "a"}, "repeats", [1, 100], [0, 101]),
        (LayerWeights, {}, "fact", [1, 1e6], [-1, 1e6 + 1]),
        (ClusterSection, {"class": "local"}, "scale", [1, 100_000], [0, 100_001]),
        (ClusterSection, {"class": "local"}, "minimum", [1, 100_000], [0, 100_001]),
        (ClusterSection, {"class": "local"}, "priority", [-1000, 1000], [-1001, 1001]),
        (Serve, {"preset": "vllm"}, "start_limit", [0.1, 86_400], [0, 86_401]),
        (AxisWindow, {}, "body", [1, 100_000], [0, 100_001]),
        (ViewConfig, {}, "trials", [1, 10**7], [0, 10**7 + 1]),
        (sweep, {}, "seed", [0, 2**63 - 1], [-1, 2**63]),
        (sweep, {}, "trials", [1, 10**7], [0, 10**7 + 1]),
        (sweep, {}, "repeats", [1, 10**5], [0, 10**5 + 1]),
        (sweep, {}, "degree", [0, 1000], [-1, 1001]),
    ],
)
def test_bounds__are_those_of_the_documentation(section, rest, field, fine, wrong):
    assert [value for value in fine if not takes(section, **rest, **{field: value})] == []
    assert [value for value in wrong if takes(section, **rest, **{field: value})] == []


def test_sweep__has_the_name_of_its_file_and_the_defaults_of_the_documentation():
    config = sweep()

    assert (config.name, config.seed, config.trials, config.repeats) == ("c", 42, 32, 1)
    assert (config.cube, config.cache) == ("results/c.zarr", "results/cache")
    assert (config.degree, config.density, config.spend, config.cluster) == (0, "normal", None, None)


@with_cases(
    ("name", "cube"),
    [("a b", "a-b"), ("-a.b_c-", "a.b_c"), ("a / b", "a-b"), ("...", "sweep"), ("größer", "größer")],
)
def test_cube__is_named_after_the_sweep(name, cube):
    assert sweep(name=f'"{name}"').cube == f"results/{cube}.zarr"


def test_sections__in_which_only_the_least_is_written():
    assert Prices(prompt=1, completion=2).paid(batch=True) == (1, 2, 0)
    assert Serve(preset="vllm").start_limit == 1200
    judge = JudgeConfig(model="a")
    assert (judge.name, judge.repeats, judge.length_debias) == ("a", 1, True)
    cluster = ClusterSection(**{"class": "local"})
    assert (cluster.scale, cluster.minimum, cluster.priority, cluster.tls) == (None, 1, 0, True)


def test_model__is_priced_where_somebody_said_so():
    free = Prices(prompt=0, completion=0)

    assert Model(name="a", endpoint="sim:", prices=free).priced
    assert not Model(name="a", endpoint="sim:").priced
