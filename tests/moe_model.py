"""The mixture-of-experts model of the runs that lie outside of the repository, on paper.

What its matrix products cost and what its collectives move, from the sizes in the config.json of a run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Model:
    """Costs of one microbatch on one device, where nothing else is said; `config` is config.json.

    A product of an [m, k] and a [k, n] matrix takes 2*m*n*k FLOPs.
    """

    config: dict[str, Any]

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {name: value for name, value in self.config.items() if isinstance(value, int)}

    @property
    def microbatches(self) -> int:
        return self.sizes["accum"]

    @property
    def turns(self) -> int:
        """Layers of all microbatches."""
        return self.microbatches * self.sizes["layers"]

    @property
    def tokens(self) -> int:
        return self.sizes["per_device_batch"] * self.sizes["seq"]

    @property
    def slots(self) -> int:
        """Places for tokens in the experts of one sequence."""
        return self.sizes["experts"] * self.sizes["capacity"]

    @property
    def choices(self) -> int:
        """Places of one sequence that the router fills, if no expert is asked for more than it has."""
        return self.sizes["topk"] * self.sizes["seq"]

    @property
    def attention_width(self) -> int:
        """Rows of the matrices of query, key, value and output together; each has d_model columns."""
        return 2 * (self.sizes["heads"] + self.sizes["kv_heads"]) * self.sizes["head_dim"]

    # Products of one layer, and of the head.

    @property
    def projections(self) -> int:
        """Query, key, value and output."""
        return 2 * self.tokens * self.sizes["d_model"] * self.attention_width

    @property
    def scores(self) -> int:
        """Queries times keys, all pairs; the scores times the values are as many again."""
        return 2 * self.tokens * self.sizes["seq"] * self.sizes["heads"] * self.sizes["head_dim"]

    @property
    def router(self) -> int:
        return 2 * self.tokens * self.sizes["d_model"] * self.sizes["experts"]

    @property
    def mask(self) -> int:
        """One-hot experts times one-hot places, summed over the choices of a token."""
        return 2 * self.tokens * self.slots * self.sizes["topk"]

    @property
    def moved(self) -> int:
        """Tokens into their places, or back: a product with a mask."""
        return 2 * self.tokens * self.slots * self.sizes["d_model"]

    @property
    def expert(self) -> int:
        """One of the three matrices of all experts, for every place."""
        places = self.sizes["per_device_batch"] * self.slots
        return 2 * places * self.sizes["d_model"] * self.sizes["ff"]

    @property
    def head(self) -> int:
        return 2 * self.tokens * self.sizes["d_model"] * self.sizes["vocab"]

    def forward(self) -> dict[str, int]:
        """A layer: the masks of dispatch and combine, and three matrices of the experts."""
        return {
            "projections": self.projections,
            "core": 2 * self.scores,
            "router": self.router,
            "masks": 2 * self.mask,
            "dispatch": self.moved,
            "experts": 3 * self.expert,
            "combine": self.moved,
        }

    def backward(self) -> dict[str, int]:
        """A layer: two products for each of `forward`, where both factors have a gradient.

        The mask of the dispatch is made of choices and has none. That of the combine holds the weights of the
        choices, which are summed over the places.
        """
        twice = {name: 2 * flops for name, flops in self.forward().items()}
        return twice | {"masks": self.mask, "dispatch": self.moved}

    def replay(self) -> dict[str, int]:
        """A layer: what the backward pass computes a second time, because it was not saved."""
        saved = set(self.config["remat_saved_names"])
        assert saved >= {"query_proj", "key_proj", "value_proj", "context", "out_proj"}
        matrices = {"mlp_wi_0", "mlp_wi_1", "mlp_wo"} - saved
        replayed = {
            "core": self.scores,
            "router": self.router,
            "masks": 2 * self.mask,
            "dispatch": self.moved * ("dispatched" not in saved),
            "experts": self.expert * len(matrices),
        }
        return {name: flops for name, flops in replayed.items() if flops}

    def step(self) -> dict[tuple[str, str], int]:
        """The products of an update, by pass and component."""
        layer = {"forward": self.forward(), "backward": self.backward(), "replay": self.replay()}
        return {
            ("forward", "lm_head"): self.microbatches * self.head,
            ("backward", "lm_head"): self.microbatches * 2 * self.head,
            **{
                (name, part): self.turns * flops
                for name, parts in layer.items()
                for part, flops in parts.items()
            },
        }

    def collectives(self) -> Counter[tuple[str, int, int]]:
        """Kind, payload bytes and executions in an update of each collective, where only fsdp is above 1.

        Weights are gathered as bfloat16, for each pass, but for those of the router, which are float32; what
        is gathered together is one collective. Gradients go back the same way, those of the experts as
        float32.
        """
        assert self.config["mesh"] == {"fsdp": self.config["devices"], "expert": 1}
        width, turns = self.sizes["d_model"], self.turns
        expert = self.sizes["experts"] * width * self.sizes["ff"]
        attention, router = width * self.attention_width, width * self.sizes["experts"]
        head = width * self.sizes["vocab"]
        # Each device has a part of every row of the embedding: it looks up the tokens of all.
        tokens = self.sizes["global_microbatch"] * self.sizes["seq"]
        sharded = ("embedding", "lm_head", "q", "k", "v", "o", "gate", "wi_0", "wi_1", "wo")
        found: Counter[tuple[str, int, int]] = Counter()
        found["all-gather", 2 * expert, turns] = 3 * 2
        found["all-gather", 2 * attention + 4 * router, turns] = 2
        found["all-gather", 2 * head, self.microbatches] = 1
        found["all-gather", 4 * tokens, self.microbatches] = 1
        found["all-to-all", 2 * self.tokens * width, self.microbatches] = 2
        found["reduce-scatter", 4 * expert, turns] = 3
        found["reduce-scatter", 2 * attention, turns] = 1
        found["reduce-scatter", 4 * router, turns] = 1
        found["reduce-scatter", 2 * head, self.microbatches] = 1
        # The two norms of a layer; the last norm with the sums of squares of the sharded gradients; the loss.
        found["all-reduce", 4 * 2 * width, turns] = 1
        found["all-reduce", 4 * (width + len(sharded)), 1] = 1
        found["all-reduce", 4, self.microbatches] = 1
        return found
