"""Rules about how much is asked: trials, tokens, dollars."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evalcube.flows.config.findings import Finding, Path
from evalcube.flows.config.secrecy import show
from evalcube.stages.process.grading import IMPORTED

if TYPE_CHECKING:
    from evalcube.flows.config.models import Sweep


def trials_or_precision(config: Sweep) -> Iterator[Finding]:
    """Either trials are given or a precision that decides them."""
    if "trials" not in config.model_fields_set or config.precision is None:
        return
    if config.trials != config.precision.base:  # equal where a config was written out
        rule = f"excludes trials ({show(config.trials)}): precision decides how many trials a cell has"
        yield Finding(("precision",), rule, remedy="Remove one of the two", at_key=True)


_PARAMS = """
    temperature top_p top_k min_p top_a typical_p tfs_z top_n_sigma seed n best_of max_tokens
    max_completion_tokens max_output_tokens max_new_tokens min_tokens n_predict stop stop_sequences
    stop_token_ids ignore_eos bad_words skip_special_tokens add_special_tokens frequency_penalty
    presence_penalty repetition_penalty repeat_penalty length_penalty repeat_last_n dry_multiplier
    dry_base mirostat mirostat_tau mirostat_eta logit_bias logprobs top_logprobs prompt_logprobs echo
    suffix prefix prediction modalities tools tool_choice parallel_tool_calls functions function_call
    response_format guided_json guided_regex guided_choice guided_grammar grammar json_schema
    structured_outputs reasoning reasoning_effort effort reasoning_format include_reasoning thinking
    enable_thinking thinking_budget verbosity chat_template_kwargs chat_template add_generation_prompt
    user metadata store service_tier safe_prompt random_seed provider models transforms system
    cache_prompt priority use_beam_search beam_width truncate_prompt_tokens plugins
""".split()
"""Request parameters of OpenAI, Anthropic, Mistral, OpenRouter, vLLM, SGLang, llama.cpp, TGI. Others are sent, too."""
_ALIKE = 0.82
"""From here on an unknown name is a misspelt one, not one of another server."""


def parameter_names(config: Sweep) -> Iterator[Finding]:
    """No parameter of a sampler is a misspelt one: servers pass unknown ones over without a word."""
    for name, sampler in config.samplers.items():
        for param in sampler:
            if param in _PARAMS:
                continue
            if param == IMPORTED:
                rule, remedy = "marks evaluations that another tool asked", "Remove it: no server takes it"
                yield Finding(("samplers", name, param), rule, remedy=remedy, at_key=True)
                continue
            spelt = param.lower().replace("-", "_")[:100]
            for close in difflib.get_close_matches(spelt, _PARAMS, n=1, cutoff=_ALIKE):
                rule, remedy = f"unknown parameter {show(param)}", f"Did you mean {show(close)}?"
                yield Finding(("samplers", name, param), rule, remedy=remedy, at_key=True)


def token_limits(config: Sweep) -> Iterator[Finding]:
    """A sampler's limit of tokens is a number of them."""
    for name, sampler in config.samplers.items():
        names = ("max_tokens", "max_completion_tokens")
        yield from limits(("samplers", name), sampler, names, "Leave it out for the server's default")


def limits(
    path: Path, sampler: Mapping[str, Any], params: tuple[str, ...], remedy: str = ""
) -> Iterator[Finding]:
    """The limits among a sampler's parameters that are none."""
    for param, value in sampler.items():
        if param in params and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            yield Finding((*path, param), "must be a whole number of at least 1", show(value), remedy)


def spend_has_prices(config: Sweep) -> Iterator[Finding]:
    """A bound in dollars can be reached."""
    if config.spend is None or config.spend.usd is None:
        return
    if not any(model.prices.prompt or model.prices.completion for model in config.models):
        rule = "no model has prices, so that this bound would never be reached"
        remedy = "Give the models prices (USD per million tokens), or bound tokens"
        yield Finding(("spend", "usd"), rule, f"{config.spend.usd:g}", remedy)
