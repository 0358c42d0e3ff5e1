"""Operations counted on models without weights, against the formula of matrix products."""

import pytest

pytestmark = pytest.mark.slow


def test_a_pass_of_the_generator_is_its_matrix_products() -> None:
    from transformers import LlamaConfig

    from crag.papers.studies import flops

    layers, width, inner, words, tokens = 2, 32, 64, 100, 10
    config = LlamaConfig(
        hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=4, vocab_size=words,
    )  # fmt: skip
    weights = layers * (4 * width * width + 3 * width * inner) + width * words
    attention = layers * 2 * tokens * tokens * width
    assert flops.generator_flops(tokens, config) == 2 * tokens * weights + 2 * attention


def test_twice_the_pair_costs_more_than_twice() -> None:
    from transformers import T5Config

    from crag.papers.studies import flops

    small = T5Config(
        d_model=16, d_ff=32, d_kv=4, num_layers=1, num_heads=4, vocab_size=50, num_labels=1,
        decoder_start_token_id=0,
    )  # fmt: skip
    one, two = flops.evaluator_flops(16, small), flops.evaluator_flops(32, small)
    assert 2 * one < two < 4 * one


def test_methods_are_told_as_in_the_paper() -> None:
    from crag.papers.studies import flops

    told = [flops.told(method, 10 * 10**12, 10**12) for method in flops.METHODS]
    assert told == ["10.0", "11.0", "10.0 to 50.0", "11.0 to 31.0"]
