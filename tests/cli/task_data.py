"""Data of the tasks' formats, small and made up."""

import math
import struct
import wave


def write_wav(path, samples, rate=8000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def write_fsdd(folder, digits=range(10), takes=range(8), speakers=("ann", "bob")):
    """Every digit is a tone of its own, of a little over a tenth of a second."""
    place = folder / "recordings"
    place.mkdir(parents=True)
    for s, speaker in enumerate(speakers):
        for digit in digits:
            for take in takes:
                pitch = 2 * math.pi * (250 + 330 * digit + 12 * s) / 8000
                samples = [int(6000 * math.sin(pitch * i + take)) for i in range(1000 + 90 * take)]
                write_wav(place / f"{digit}_{speaker}_{take}.wav", samples)


def write_text_pairs(folder, **changes):
    """Sentences that are translated word by word; some of the files as `changes` has them."""
    words = {"a man": "ein Mann", "a dog": "ein Hund", "the child": "das Kind", "a bird": "ein Vogel"}
    deeds = {"runs": "läuft", "sleeps": "schläft", "eats": "frisst", "sings": "singt"}
    places = {"here": "hier", "outside": "draußen", "in the house": "im Haus", "today": "heute"}
    pairs = [(f"{who} {what} {where}.", f"{words[who]} {deeds[what]} {places[where]}.")
             for who in words for what in deeds for where in places]
    folder.mkdir(parents=True)
    parts = {"train": pairs, "val": pairs[::5], "test_2016_flickr": pairs[::7]}
    for name, part in parts.items():
        for side, language in enumerate(("en", "de")):
            key = f"{name}.{language}"
            text = changes.get(key, "".join(pair[side] + "\n" for pair in part))
            if text is not None:
                (folder / key).write_text(text, encoding="utf-8")
