"""Beam search."""

from __future__ import annotations

import torch

from .model import BEGIN, END, PAD, Transformer

Scored = tuple[float, list[int]]  # a log-probability, and the tokens it is of
NOTHING: Scored = (-torch.inf, [BEGIN])


class Search:
    """The beams of one sentence, and the best complete translation so far: that of the highest
    log-probability over ((5 + length) / 6)^alpha."""

    def __init__(self, beams: int, most: int, alpha: float) -> None:
        self.most, self.alpha = most, alpha
        self.alive: list[Scored] = [(0.0, [BEGIN])] + [NOTHING] * (beams - 1)  # they begin as one
        self.best: Scored = NOTHING

    def advance(self, candidates: list[tuple[float, int, int]]) -> None:
        """The likeliest ways on, as (log-probability, beam, token), the best first."""
        alive: list[Scored] = []
        for score, beam, token in candidates:
            tokens = [*self.alive[beam][1], token]
            if token == END or len(tokens) > self.most:
                self.best = max(self.best, (score / self._penalty(len(tokens) - 1), tokens))
            else:
                alive.append((score, tokens))
        beams = len(self.alive)
        rest = (NOTHING[0], [BEGIN] * (len(self.alive[0][1]) + 1))  # counts for nothing
        self.alive = (alive + [rest] * beams)[:beams]

    def is_over(self) -> bool:
        """Whether no beam can become better: a log-probability only falls, and is divided by no more
        than at the greatest length."""
        return self.alive[0][0] / self._penalty(self.most) <= self.best[0]

    def found(self) -> list[int]:
        return [token for token in self.best[1] if token not in (BEGIN, END)]

    def _penalty(self, length: int) -> float:
        return ((5 + length) / 6) ** self.alpha


@torch.no_grad()
def translate(
    model: Transformer, source: torch.Tensor, beams: int = 4, alpha: float = 0.6, longer: int = 50
) -> list[list[int]]:
    """The best translation found of each row of `source`, of at most `longer` tokens more."""
    most = source.shape[1] + longer
    searches = [Search(beams, most, alpha) for _ in source]
    context, allowed = (t.repeat_interleave(beams, 0) for t in model.encode(source))
    for _ in range(most):
        alive = [beam for search in searches for beam in search.alive]
        tokens = torch.tensor([tokens for _, tokens in alive], device=source.device)
        scores = torch.tensor([score for score, _ in alive], device=source.device)
        following = model.decode(tokens, context, allowed)[:, -1].float().log_softmax(-1)
        following[:, [PAD, BEGIN]] = -torch.inf
        words = following.shape[1]
        totals = (scores[:, None] + following).view(len(searches), beams * words)
        # Twice as many as there are beams, as half of them may be ends.
        best, places = (t.tolist() for t in totals.topk(2 * beams))
        for search, row, where in zip(searches, best, places, strict=True):
            search.advance([(s, p // words, p % words) for s, p in zip(row, where, strict=True)])
        if all(search.is_over() for search in searches):
            break
    return [search.found() for search in searches]
