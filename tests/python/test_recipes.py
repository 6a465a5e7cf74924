"""The recipes train, test, stop and go on, on a few made-up samples. What they reach on real data is
not measured here."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.cpu("the recipes are tested on the CPU")
PROJECT = Path(__file__).parents[2]


def _run(recipe: str, *arguments: object, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               "-m", f"examples.{recipe}.train", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=PROJECT,
                          env=dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""))


def _ok(recipe: str, *arguments: object, ranks: int = 2) -> str:
    done = _run(recipe, *arguments, ranks=ranks)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _weights(out: Path, number: int) -> dict[str, torch.Tensor]:
    return torch.load(out / str(number) / "parts.pt", weights_only=True)["model"]


def _expect_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes, told apart by their colour."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("pictures")
    chance = random.Random(1)
    for part, count in (("train", 8), ("val", 3)):
        for name, colour in (("blue", (30, 60, 200)), ("red", (200, 60, 30))):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                noisy = tuple(c + chance.randrange(-25, 25) for c in colour)
                image.new("RGB", (48 + i, 40), noisy).save(folder / part / name / f"{i}.png")
    return folder


def _imagenet(data: Path, out: Path, epochs: int, *more: object) -> tuple[object, ...]:
    return ("--data", data, "--out", out, "--epochs", epochs, "--batch", 4, "--size", 32, "--workers", 0,
            "--lr", 0.01, "--method", "scalecom,rate=96,beta=0.1,warmup=1", *more)


def test_imagenet_goes_on_as_if_it_had_not_stopped(pictures: Path, tmp_path: Path) -> None:
    printed = _ok("imagenet", *_imagenet(pictures, tmp_path / "straight", 3))
    assert re.findall(r"epoch (\d): loss \d+\.\d+, top-1 \d+\.\d+%", printed) == ["1", "2", "3"]
    _ok("imagenet", *_imagenet(pictures, tmp_path / "stopped", 2))
    assert sorted(f.name for f in (tmp_path / "stopped").iterdir()) == ["1", "2"]
    printed = _ok("imagenet", *_imagenet(pictures, tmp_path / "stopped", 3))
    assert "epoch 3" in printed and "epoch 2" not in printed
    _expect_same(_weights(tmp_path / "straight", 3), _weights(tmp_path / "stopped", 3))


def test_imagenet_in_bf16_and_with_another_number_of_ranks(pictures: Path, tmp_path: Path) -> None:
    _ok("imagenet", *_imagenet(pictures, tmp_path, 1, "--amp"))
    assert "epoch 2" in _ok("imagenet", *_imagenet(pictures, tmp_path, 2, "--amp"), ranks=1)


def test_imagenet_says_what_is_wrong_with_its_data(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PROJECT))
    from examples.imagenet import train
    from examples.world import Place

    def refuse(words: str, data: Path, *more: object) -> None:
        options = _imagenet(data, tmp_path / "out", 1, *more)
        monkeypatch.setattr(sys, "argv", ["train.py", *map(str, options)])
        with pytest.raises(SystemExit, match=words):
            train.Trainer(train.arguments(), Place(0, 2, torch.device("cpu")))

    refuse("nowhere/train is not there", tmp_path / "nowhere")
    (tmp_path / "train" / "red").mkdir(parents=True)
    refuse("has no folder with pictures", tmp_path)
    refuse("16 pictures are less than one batch of 200", pictures, "--batch", 100)


def test_imagenet_has_the_papers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.syspath_prepend(str(PROJECT))
    from examples.imagenet.model import resnet50
    from examples.imagenet.train import learning_rate, paper_method

    assert sum(p.numel() for p in resnet50(1000).parameters()) == 25_557_032
    assert paper_method(256, 5000) == "scalecom,rate=96,beta=1,warmup=25000"
    assert paper_method(2048, 625) == "scalecom,rate=96,beta=0.1,warmup=3125"
    assert [learning_rate(0.1, e, 256) for e in (0, 29.9, 30, 60, 80)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.001, 0.0001])
    assert [learning_rate(0.8, e, 2048) for e in (0, 5, 30)] == pytest.approx([0.08, 0.8, 0.08])


NUMBERS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "eight": "acht", "six": "sechs"}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers in two languages, word by word."""
    pytest.importorskip("sentencepiece")
    pytest.importorskip("sacrebleu")
    folder = tmp_path_factory.mktemp("sentences")
    chance = random.Random(1)
    for part, count in (("train", 200), ("valid", 7), ("test", 9)):
        lines = [chance.choices(list(NUMBERS), k=chance.randrange(3, 6)) for _ in range(count)]
        (folder / f"{part}.en").write_text("".join(" ".join(words) + "\n" for words in lines))
        (folder / f"{part}.de").write_text(
            "".join(" ".join(NUMBERS[w] for w in words) + "\n" for words in lines))
    return folder


def _wmt(data: Path, out: Path, steps: int, *more: object) -> tuple[object, ...]:
    small = {"--width": 32, "--heads": 4, "--hidden": 64, "--layers": 1, "--vocabulary": 48, "--tokens": 200,
             "--lr": 5e-3, "--lr-warmup": 20, "--method": "scalecom,rate=10,beta=0.5,first=compressed,warmup=20"}
    return ("--data", data, "--out", out, "--steps", steps, *(x for item in small.items() for x in item), *more)


def _bleu(printed: str) -> float:
    return float(re.search(r"^BLEU (\d+\.\d+)$", printed, re.MULTILINE)[1])


def test_wmt_learns_to_translate(sentences: Path, tmp_path: Path) -> None:
    assert _bleu(_ok("wmt", *_wmt(sentences, tmp_path / "untrained", 1))) < 10
    assert _bleu(_ok("wmt", *_wmt(sentences, tmp_path / "trained", 400))) > 25


def test_wmt_goes_on_as_if_it_had_not_stopped(sentences: Path, tmp_path: Path) -> None:
    _ok("wmt", *_wmt(sentences, tmp_path / "straight", 30))
    _ok("wmt", *_wmt(sentences, tmp_path / "stopped", 17, "--every", 10))
    printed = _ok("wmt", *_wmt(sentences, tmp_path / "stopped", 30))
    assert re.findall(r"step (\d+):", printed) == ["30"]
    one, other = (_weights(tmp_path / run / "checkpoints", 30) for run in ("straight", "stopped"))
    _expect_same(one, other)


def test_wmt_has_the_papers_settings(sentences: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROJECT))
    from examples.wmt.model import Transformer
    from examples.wmt.train import learning_rate, paper_method

    embedding, layers = 32_000 * 512, 6 * (3_152_384 + 4_204_032)
    assert sum(p.numel() for p in Transformer(32_000).parameters()) == embedding + layers
    assert paper_method(36_000, 100_000) == "scalecom,rate=47,beta=1,first=compressed,warmup=5000"
    assert "beta=0.1" in paper_method(288_000, 100_000)
    assert [learning_rate(7e-4, s, 4000) for s in (0, 1999, 3999, 15_999)] == pytest.approx(
        [7e-4 / 4000, 3.5e-4, 7e-4, 3.5e-4])


def test_wmt_batches_hold_every_pair_once_within_their_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("sentencepiece")
    monkeypatch.syspath_prepend(str(PROJECT))
    from examples.wmt.data import Pairs, Sentences

    lengths = torch.randint(1, 30, (500,), generator=torch.Generator().manual_seed(1))
    ends = torch.cat((torch.zeros(1, dtype=torch.long), lengths.cumsum(0)))
    side = Sentences(torch.zeros(int(ends[-1]), dtype=torch.int32), ends)
    pairs = Pairs(side, side, longest=25)
    shares = [pairs.batches(3, 1, 100, rank, 3) for rank in range(3)]
    assert len({len(share) for share in shares}) == 1
    for batch in (b for share in shares for b in share):
        assert len(batch) * int(lengths[batch].max()) <= 100
    seen = [p for share in shares for b in share for p in b]
    fits = int((lengths <= 25).sum())
    assert len(set(seen)) == len(seen) and fits - 2 * 100 <= len(seen) <= fits
    assert shares[0] != pairs.batches(4, 1, 100, 0, 3)


def test_beam_search_finds_the_likeliest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all translations of up to three tokens of a small vocabulary."""
    monkeypatch.syspath_prepend(str(PROJECT))
    import itertools

    from examples.wmt.model import BEGIN, END, PAD, Transformer
    from examples.wmt.search import translate

    torch.manual_seed(3)
    model = Transformer(7, width=16, heads=2, hidden=16, layers=1).eval()
    with torch.no_grad():
        model.embedding.weight.mul_(4)
    source = torch.tensor([[4, 5, END], [6, END, PAD]])

    def score(row: int, words: tuple[int, ...], ended: bool) -> float:
        tokens = torch.tensor([[BEGIN, *words, END]])
        with torch.no_grad():
            logits = model(source[row : row + 1], tokens[:, :-1])[0].log_softmax(-1)
        counted = len(words) + int(ended)
        total = sum(float(logits[i, t]) for i, t in enumerate(tokens[0, 1 : counted + 1].tolist()))
        return total / ((5 + counted) / 6) ** 0.6

    for row, found in enumerate(translate(model, source, beams=16, longer=0)):
        candidates = {
            words: score(row, words, ended=length < 3)
            for length in range(4) for words in itertools.product(range(3, 7), repeat=length)
        }
        assert found == list(max(candidates, key=candidates.get))
