"""Why an object is as it is: who requires it, what was decided, what it waits for, what to do next.

`explain` runs every `Explainer` that applies to an object and combines their parts; packages add
explainers through the entry point `pergola.explainers`. An explainer reads and decides with the
controllers' own functions, so its answers cannot differ from what they do.

Not for: printing, which is the command's job.
"""

from pergola.why.answer import Answer, Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.data import data_of
from pergola.why.engine import NothingToExplain, explain, explain_object
from pergola.why.explainer import Explainer
from pergola.why.reading import Reader

__all__ = [
    "Answer",
    "Asked",
    "Evidence",
    "Explainer",
    "Kind",
    "NothingToExplain",
    "Part",
    "Reader",
    "Statement",
    "Topic",
    "data_of",
    "explain",
    "explain_object",
]
