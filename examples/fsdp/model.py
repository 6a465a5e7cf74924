"""A small GPT over bytes."""

from __future__ import annotations

import torch
from torch import nn

BYTES = 256


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.before_feed_forward = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden + self._attend(self.before_attention(hidden))
        return hidden + self.feed_forward(self.before_feed_forward(hidden))

    def _attend(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, width = hidden.shape
        heads = self.query_key_value(hidden).view(batch, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Gpt(nn.Module):
    """Says of every byte of a text what comes next."""

    def __init__(self, width: int = 128, blocks: int = 4, heads: int = 4, length: int = 128) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, BYTES, bias=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.bytes(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))
