"""Trains a small network with Lightning and ScaleCom.

    torchrun --nproc-per-node 2 examples/lightning/train.py
"""

import argparse

import lightning
import scalecom
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Compress(lightning.Callback):
    """Turns a method on once Lightning has wrapped the model."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.state: scalecom.State | None = None

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self.state = scalecom.register(trainer.strategy.model, self.method)  # the line

    def on_train_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if trainer.is_global_zero:
            stats = self.state.stats()
            print(f"sent {stats['bytes_sent'] / 1e6:.1f} MB, {stats['effective_rate']:.1f}x less than dense")


class Network(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        inputs, labels = batch
        return nn.functional.cross_entropy(self.layers(inputs), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--method", default="scalecom,rate=100,beta=0.1,warmup=20")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(0)
    inputs = torch.randn(4096, 64)
    labels = nn.Linear(64, 10)(inputs).argmax(1)
    trainer = lightning.Trainer(
        strategy="ddp", accelerator="auto", devices="auto" if torch.cuda.is_available() else 2,
        max_epochs=args.epochs, callbacks=[Compress(args.method)], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Network(), DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True))


if __name__ == "__main__":
    main()
