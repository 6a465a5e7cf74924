"""Trains a small network with Hugging Face Accelerate and ScaleCom.

    torchrun --nproc-per-node 2 examples/accelerate/train.py
"""

import argparse

import scalecom
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--method", default="scalecom,rate=100,beta=0.1,warmup=20")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(0)
    inputs = torch.randn(4096, 64)
    labels = nn.Linear(64, 10)(inputs).argmax(1)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    state = scalecom.register(model, args.method)  # the line: prepare() made a DistributedDataParallel

    for epoch in range(args.epochs):
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), wanted)
            accelerator.backward(loss)
            optimizer.step()
        accelerator.print(f"epoch {epoch + 1}: loss {loss.item():.3f}")
    stats = state.stats()
    accelerator.print(f"sent {stats['bytes_sent'] / 1e6:.1f} MB, {stats['effective_rate']:.1f}x less than dense")
    accelerator.end_training()


if __name__ == "__main__":
    main()
