"""A model's config.json and the parallel sizes to the device pools of each stage; one file a family of models.

May import core and arguments, nothing above. Raises nothing for a person's mistake: findings come back.
"""

from __future__ import annotations

from .answer import pipeline_of
from .families import families
from .family import Case, Family, FamilyPage
from .loading import load_model
from .model import Model, Part
from .parallel import NodeRanks, placement, stages_never_started
from .pipeline import Pipeline, Question, Settled

__all__ = [
    "Case",
    "Family",
    "FamilyPage",
    "Model",
    "NodeRanks",
    "Part",
    "Pipeline",
    "Question",
    "Settled",
    "families",
    "load_model",
    "pipeline_of",
    "placement",
    "stages_never_started",
]
