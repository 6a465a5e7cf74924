"""Transformer-base: an encoder and a decoder of six layers each, which share one embedding with the
output."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

PAD, BEGIN, END = 0, 1, 2  # of every vocabulary here


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def forward(self, inputs: torch.Tensor, context: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """`allowed` says, for (batch, 1, inputs or 1, context), what may be looked at."""

        def split(values: torch.Tensor) -> torch.Tensor:
            return values.unflatten(2, (self.heads, -1)).transpose(1, 2)

        seen = functional.scaled_dot_product_attention(
            split(self.query(inputs)), split(self.key(context)), split(self.value(context)), attn_mask=allowed
        )
        return self.output(seen.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Of the encoder, or of the decoder, which looks at the encoder's output too. Sums are normalised
    after they are taken, as in the first Transformer."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, decodes: bool) -> None:
        super().__init__()
        self.own = Attention(width, heads)
        self.source = Attention(width, heads) if decodes else None
        self.grow, self.shrink = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if decodes else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, inputs: torch.Tensor, allowed: torch.Tensor,
        source: torch.Tensor | None = None, source_allowed: torch.Tensor | None = None,
    ) -> torch.Tensor:
        values = self.norms[0](inputs + self.dropout(self.own(inputs, inputs, allowed)))
        if self.source is not None:
            values = self.norms[2](values + self.dropout(self.source(values, source, source_allowed)))
        return self.norms[1](values + self.dropout(self.shrink(torch.relu(self.grow(values)))))


class Transformer(nn.Module):
    def __init__(
        self, vocabulary: int, width: int = 512, heads: int = 8, hidden: int = 2048, layers: int = 6,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.encoder = nn.ModuleList(Layer(width, heads, hidden, dropout, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(width, heads, hidden, dropout, True) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        with torch.no_grad():
            self.embedding.weight[PAD].zero_()

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """What follows each beginning of `target`, as scores of the vocabulary."""
        return self.decode(target, *self.encode(source))

    def encode(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        allowed = (source != PAD)[:, None, None, :]
        values = self._embed(source)
        for layer in self.encoder:
            values = layer(values, allowed)
        return values, allowed

    def decode(self, target: torch.Tensor, source: torch.Tensor, source_allowed: torch.Tensor) -> torch.Tensor:
        length = target.shape[1]
        past = torch.ones(length, length, dtype=torch.bool, device=target.device).tril()
        values = self._embed(target)
        for layer in self.decoder:
            values = layer(values, past[None, None], source, source_allowed)
        return functional.linear(values, self.embedding.weight)

    def _embed(self, tokens: torch.Tensor) -> torch.Tensor:
        places = _sinusoids(tokens.shape[1], self.width, tokens.device)
        return self.dropout(self.embedding(tokens) * math.sqrt(self.width) + places)


def _sinusoids(length: int, width: int, device: torch.device) -> torch.Tensor:
    place = torch.arange(length, device=device)[:, None]
    speed = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10000.0) / width))
    return torch.stack(((place * speed).sin(), (place * speed).cos()), 2).flatten(1)
