"""What a model file must hold once it is imported, whatever the framework."""

import pytest

from training.errors import SpecError
from training.model_file import load_model_file
from training.spec.pipeline import ModelSpec

BLOCK = "class Block:\n def collect_params(self): ...\n def __call__(self, x): ...\n"


def load(folder, text, **params):
    (folder / "net.py").write_text(text)
    return load_model_file(ModelSpec(entrypoint="net.py", params=params), folder)


@pytest.mark.parametrize("build_model", ["Net", "functools.partial(Net, 2)", "lambda: Net()"])
def test_whatever_makes_a_model_when_called_does(tmp_path, build_model):
    text = f"import functools\nclass Net:\n def __init__(self, width=2): ...\nbuild_model = {build_model}"

    assert type(load(tmp_path, text).build_model()).__name__ == "Net"


@pytest.mark.parametrize("name", ["build_model", "build_loss"])
def test_a_block_takes_rows_and_so_makes_no_model(tmp_path, name):
    text = f"{BLOCK}def build_model(): return Block()\n{name} = Block()"

    with pytest.raises(SpecError, match=rf"{name} of net.py must be a function. Received: a Block. Write: def {name}"):
        load(tmp_path, text)


def test_a_parameter_that_nothing_takes_is_told_with_the_functions_that_take_some(tmp_path):
    text = "def build_model(width=1): ...\ndef build_loss(): ...\ndef build_trainer(params, rate=1): ..."

    with pytest.raises(SpecError) as refusal:
        load(tmp_path, text, rat=2)
    assert str(refusal.value) == (
        "model.params.rat: must be a parameter of build_model(width=1) or build_trainer(params, rate=1). "
        "Received: rat. Did you mean 'rate'?"
    )
