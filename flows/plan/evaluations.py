"""A model, a template and a sampler in; one place on the model axis, with its identity, out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flows.config.templates import Template
from flows.plan.spec import EvaluationSpec
from stages.reply.forms import CHAT


@dataclass(frozen=True)
class Evaluation:
    """One place on the model axis: a model asked through a template with a sampler."""

    model: str
    """Label of the model."""
    request_model: str
    """Name that is sent."""
    template_name: str
    template_source: str | Sequence[Mapping[str, str]]
    sampler_name: str
    sampler: Mapping[str, Any]
    api: str = CHAT
    """Which API its endpoint speaks."""

    @cached_property
    def eval_id(self) -> str:
        """Digest of what is sent besides the prompt; equal ids give equal requests."""
        sent = [self.request_model, self.template_source, self.sampler]
        text = json.dumps(sent if self.api == CHAT else [*sent, self.api], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def template(self) -> Template:
        """The compiled template."""
        return Template(self.template_source)

    @property
    def label(self) -> str:
        """A short name for people."""
        return f"{self.model} / {self.template_name} / {self.sampler_name}"

    def spec(self) -> dict[str, object]:
        """The evaluation as JSON."""
        return {
            "eval_id": self.eval_id,
            "model": self.model,
            "request_model": self.request_model,
            "template": {"name": self.template_name, "source": self.template_source},
            "sampler": {"name": self.sampler_name, "params": self.sampler},
            **({} if self.api == CHAT else {"api": self.api}),
        }

    @classmethod
    def from_spec(cls, spec: EvaluationSpec) -> Evaluation:
        """Read what `spec` wrote."""
        template, sampler = spec.template, spec.sampler
        return cls(
            spec.model,
            spec.request_model,
            template.name,
            template.source,
            sampler.name,
            sampler.params,
            spec.api,
        )
