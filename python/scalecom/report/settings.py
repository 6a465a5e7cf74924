"""What runs are set to besides their method, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalecom.report import wording
from scalecom.report.sources.runs import Run


@dataclass(frozen=True)
class Setting:
    head: str  # of its column in a table
    value: Callable[[Run], float | str | None]
    phrase: str  # what it is called in a line with others
    figure: str = ".4g"
    is_always_said: bool = False  # be it the same in all that is shown

    def text(self, run: Run) -> str:
        value = self.value(run)
        if value is None:
            return wording.MISSING
        return value if isinstance(value, str) else format(value, self.figure)

    def said(self, run: Run) -> str:
        """"" where it is not known."""
        phrase = self.phrase.removesuffix("s") if self.value(run) == 1 else self.phrase  # 1 learner
        return "" if self.value(run) is None else phrase.format(self.text(run))

    def differs(self, runs: Sequence[Run]) -> bool:
        return len({self.value(run) for run in runs}) > 1


SETTINGS = (
    Setting("Learners", lambda run: run.learners, "{} learners", ",", is_always_said=True),
    Setting("Batch a learner", lambda run: run.batch, "batch {} each", ",", is_always_said=True),
    Setting("Steps", lambda run: run.steps, "{} steps", ",", is_always_said=True),
    Setting("Learning rate", lambda run: run.learning_rate, "learning rate {}", is_always_said=True),
    Setting("Learning-rate warm-up", lambda run: run.learning_rate_warmup, "learning-rate warm-up {}"),
    Setting("Weight decay", lambda run: run.weight_decay, "weight decay {}"),
    Setting("Optimizer", lambda run: run.optimizer, "optimizer {}"),
    Setting("Momentum", lambda run: run.momentum, "momentum {}"),
    Setting("Moved by momentum", lambda run: "what was sent" if run.masked_momentum else None, "masked momentum"),
)


def order(run: Run) -> tuple[object, ...]:
    """By which runs that can be compared stand together."""
    return (run.task, run.learners, run.batch or 0, run.steps, run.learning_rate or 0, run.learning_rate_warmup or 0,
            run.weight_decay or 0, run.optimizer, run.momentum or 0)
