"""The first config that `evalcube init` writes, with comments that teach."""

from __future__ import annotations

_INITIAL = """\
# A sweep: every model x template x sampler, on every point of every task.
# As it stands it asks a simulated model, so it runs anywhere, at once and for nothing.

name: first-sweep
seed: 42          # all questions follow from it: equal seeds ask equal questions
trials: 32        # different questions per point; raise it later, what is there is kept
# precision: medium   # in place of trials: as many as each point needs for ±6 % (low: ±9 %, high: ±4 %)
repeats: 1        # times that each question is asked
cube: results/first-sweep.zarr   # the results; relative to the current directory
cache: results/cache             # every response; several sweeps may share one

models:
  # An endpoint is one of
  #   https://host/v1         any OpenAI-compatible server, or another api: the base URL
  #   local:smollm2           a small real model on this machine (evalcube local setup)
  #   local:/path/model.gguf  your own weights, served by llama.cpp on this machine
  #   [https://a/v1, https://b/v1]   several servers of one model
  # or, in its place, serve: {preset: vllm} or {command: ...} has the run start a server
  #   "sim:"                  a simulated model; the quotes are needed
  - name: simulated           # unique label in reports
    endpoint: "sim:"
    simulate:
      ability: 4.0            # log2 of the difficulty at which half of the trials are known
      slope: 1.2              # steepness: how soon it gets worse
      tokens: 60              # median length of its answers
    facets: {family: simulated, size: 0}   # free labels to filter and group by

  # - name: my-model
  #   endpoint: https://api.example.com/v1
  #   model: my-model-2026-01       # sent as "model"; default: the name
  #   api: chat                     # or completions (plain text), or messages (as Anthropic's)
  #   stream: false                 # true also records the time to the first token
  #   batch: false                  # true sends requests in batches, for half the price at many providers
  #   key_env: EXAMPLE_API_KEY      # NAME of an environment variable; never put the key itself here
  #   # in place of key_env: key_file: /run/secrets/example, or key_command: [pass, show, example];
  #   # either is read again when the key has expired
  #   ca_file: own-authority.pem    # where the endpoint's certificate is not of a public authority
  #   limits: {connections: auto, timeout: 120, retries: 5}   # requests at once, found out; seconds; further tries
  #   # limits also: requests_per_minute, tokens_per_minute
  #   prices: {prompt: 0.15, completion: 0.60}              # USD per million tokens, for the report
  #   facets: {family: mine, size: 7}

templates:
  # Messages with Jinja contents. There are {{ prompt }}, {{ task }} and {{ params.length }} (any param).
  plain:
    - {role: user, content: "{{ prompt }}"}
  # brief:
  #   - {role: system, content: "Think step by step, but briefly."}
  #   - {role: user, content: "{{ prompt }}"}

samplers:
  # Any request parameters; null or nothing = the server's own default.
  greedy: {temperature: 0, max_tokens: 4096}   # models that reason need thousands; what is cut counts as truncated
  # warm: {temperature: 0.7, top_p: 0.95, max_tokens: 2048}

# Default: every model x template x sampler. To choose:
# evaluations:
#   - {models: [simulated], templates: [plain], samplers: [greedy]}

tasks:
  arithmetic:
    manifold:
      # A grid: all combinations; a single value is an axis of one.
      - grid: {length: [4, 8, 16], max_depth: [0, 2]}
        tiers: [easy, medium]      # reports compare models tier by tier
      # Or explicit points; a point may be in several tiers.
      - points:
          - {length: 24, max_depth: 4}
          - {length: 32, max_depth: 4}
        tiers: [medium]
  boolean:
    manifold:
      - grid: {length: [4, 12]}
        tiers: [easy]
      # One grid for several tiers: a window of two values, which slides up the range with the tier's degree.
      - grid: {length: {range: [16, 24, 32], window: {skip: degree, body: 2}}, max_depth: [2, 4]}
        tiers: {medium: 0, hard: 1}

# Parts of the results under names of their own: filters over labels, facets and params.
# views:
#   long-arithmetic: {where: {task: arithmetic, param_length: {min: 16}}}
"""


def initial_config() -> str:
    """Give a commented YAML config that is valid as it stands."""
    return _INITIAL
