"""A small server of a language model: continuous batching, with the GPU of `device`.

```
main      [schedule][copy in][launch][sample][read back][ text of each request ][schedule] ...
gpu                          [= a forward pass =]
```

Requests wait in a queue. A step prefills the first of them where the batch has room, else it decodes a token of each
running request. What the model would say is made up; the scheduler, its tables and the texts are real.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from device import US, Device, open_device

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from waitlog import Log

try:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    Tokenizer = None

REQUESTS, MOST_RUNNING, LAYERS, KERNELS_OF_A_LAYER = 8, 8, 8, 4
PROMPT, ANSWER, BLOCK = (300, 600), (24, 28), 16
DECODE, PREFILL, SAMPLE = "paged_attention_v2_kernel", "flash_fwd_kernel", "topk_sampling_kernel"
DECODE_NS, SAMPLE_NS, PREFILL_NS = 28 * US, 10 * US, 150
"""Of a kernel of a layer; that of a prefill for each token of the prompt."""
WORDS = ("the", "step", "of", "a", "server", "waits", "for", "tokens", "that", "nobody", "reads", "twice")
VOCABULARY, TOKENS = 400, 96


Fresh = tuple[int, list[int]]
"""The number of a request and its new tokens; at first those of its prompt."""


@dataclass
class Request:
    """Its number, its prompt, of how many tokens the answer is, and the answer so far."""

    number: int
    prompt: list[int]
    wanted: int
    tokens: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)


class Texts:
    """Makes the text of tokens: with the package tokenizers where there is one, else by a table."""

    def __init__(self) -> None:
        self._table = [f" {word}{number}" for number in range(VOCABULARY) for word in WORDS[number % len(WORDS) :][:1]]
        self._tokenizer = None if Tokenizer is None else self._trained()
        self._tokens: dict[int, list[int]] = {}

    @staticmethod
    def _trained() -> Tokenizer:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        chance = random.Random(0)
        lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(200)]
        tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False))
        return tokenizer

    def add(self, fresh: list[Fresh]) -> list[str]:
        """The whole texts of these requests, with their new tokens."""
        for number, tokens in fresh:
            self._tokens.setdefault(number, []).extend(tokens)
        return [self._of(self._tokens[number]) for number, _ in fresh]

    def _of(self, tokens: list[int]) -> str:
        if self._tokenizer is None:
            return "".join(map(self._table.__getitem__, tokens)).strip()
        text: str = self._tokenizer.decode(tokens)
        return text


def decode_ns(requests: int) -> int:
    """How long each kernel of a decode step takes."""
    return (DECODE_NS + requests * US // 4) // KERNELS_OF_A_LAYER


class Server:
    """One process with a GPU. `graphs`: decode steps replay a CUDA graph for their batch. `elsewhere`: texts are made
    by another process. `later`: tokens are read back when the next step is launched. `waits`: each step ends with a
    synchronization."""

    def __init__(
        self, log: Log, *, graphs: bool = True, elsewhere: bool, later: bool = False, waits: bool = False
    ) -> None:
        self._log, self._later, self._waits = log, later, waits
        self._device: Device = open_device(log)
        chance = random.Random(1)
        self._chance = chance
        prompts = [chance.choices(range(TOKENS), k=chance.randint(*PROMPT)) for _ in range(REQUESTS)]
        self._waiting = deque(Request(at, prompt, chance.randint(*ANSWER)) for at, prompt in enumerate(prompts))
        self._running: list[Request] = []
        self._free = list(range(4_096))
        self._inputs = self._device.host_buffer(1 << 14, pinned=True)
        sizes = range(1, MOST_RUNNING + 1) if graphs else ()
        kernels = LAYERS * KERNELS_OF_A_LAYER
        self._graphs = {size: self._device.graph(kernels, decode_ns(size), DECODE) for size in sizes}
        self._texts = Texts()
        self._show: Callable[[list[Fresh]], None] = self._shown
        self._reader: BaseProcess | None = None
        if elsewhere:
            self._reader, connection = reader_of_texts(log)
            self._show = connection.send

    def serve(self) -> None:
        """All requests, to their ends. What is there by now is none of the garbage collector's, as in servers."""
        gc.collect()
        gc.freeze()
        gc.disable()
        pending: Callable[[], None] | None = None
        while self._waiting or self._running:
            with self._log.step():
                batch = self._scheduled()
                self._forward(batch)
                if self._later:
                    read, pending = pending, self._device.read_later()
                    if read is not None:
                        read()
                else:
                    self._device.read_back()
                if self._waits:
                    with self._log.injected("synchronization", shown=False):
                        self._device.synchronize()
                self._sampled(batch)
        if self._reader is not None:
            self._show([])
            self._reader.join()

    def _scheduled(self) -> list[Request]:
        """The requests of the next step, with the tables that its kernels read."""
        if self._waiting and len(self._running) < MOST_RUNNING:
            batch = [self._waiting.popleft()]
            self._running += batch
        else:
            batch = list(self._running)
        for each in batch:
            missing = (len(each.prompt) + len(each.tokens)) // BLOCK + 1 - len(each.blocks)
            each.blocks += [self._free.pop() for _ in range(missing)]
        table = np.full((len(batch), 64), -1, np.int32)
        for row, each in enumerate(batch):
            table[row, : len(each.blocks)] = each.blocks
        self._slots = table[:, 0] * BLOCK + np.array([len(each.prompt) + len(each.tokens) for each in batch]) % BLOCK
        return batch

    def _forward(self, batch: list[Request]) -> None:
        self._device.copy_in(self._inputs)
        with nullcontext() if self._graphs else self._log.injected("launches", shown=False):
            if not batch[0].tokens:
                for _layer in range(LAYERS):
                    self._device.work(len(batch[0].prompt) * PREFILL_NS, PREFILL)
            elif self._graphs:
                self._graphs[len(batch)]()
            else:
                for _kernel in range(LAYERS * KERNELS_OF_A_LAYER):
                    self._device.work(decode_ns(len(batch)), DECODE)
        self._device.work(SAMPLE_NS, SAMPLE)

    def _sampled(self, batch: list[Request]) -> None:
        """What the device sampled, and the texts so far."""
        for each in batch:
            each.tokens.append(self._chance.randrange(TOKENS))
        fresh = [(each.number, each.tokens[-1:] if len(each.tokens) > 1 else each.prompt) for each in batch]
        self._show(fresh)
        for each in [each for each in batch if len(each.tokens) >= each.wanted]:
            self._running.remove(each)
            self._free += each.blocks

    def _shown(self, fresh: list[Fresh]) -> None:
        with self._log.injected("detokenizing", shown=False):
            self._texts.add(fresh)


def reader_of_texts(log: Log) -> tuple[BaseProcess, Connection]:
    """A process that makes the texts of what is sent to it, until it gets nothing."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_make_texts, args=(log, there), daemon=True)
    process.start()
    return process, here


def _make_texts(log: Log, connection: Connection) -> None:
    log.fork("texts")
    texts = Texts()
    while fresh := connection.recv():
        texts.add(fresh)
    log.save()
