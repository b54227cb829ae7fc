from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training import settings
from training.tracking.mask import mask_text, mask_uri, restore_uri, split_credentials

SECRET = "s3cr3t-XYZ"


@pytest.mark.parametrize(
    "uri",
    [
        f"http://ada:{SECRET}@host:5000",
        f"https://ada:p@{SECRET}@host/path",
        f"http://:{SECRET}@host",
        f"postgresql+psycopg2://ada:{SECRET}@db:5432/mlflow",
        f"https://host/x?token={SECRET}&y=1",
        f"mysql://host/db?password={SECRET}",
    ],
)
def test_an_address_is_shown_without_its_password(uri: str) -> None:
    """K18."""
    assert SECRET not in mask_uri(uri)
    assert SECRET not in mask_text(f"API request to {uri} failed: retry {uri}.", {})


def test_addresses_without_a_password_stay_as_they_are() -> None:
    for uri in ("http://127.0.0.1:5000", "sqlite:////data/my db.db", "file:///x:y@z", "databricks", "http://ada@h/p"):
        assert mask_uri(uri) == uri


def test_the_password_of_the_environment_is_masked_in_messages() -> None:
    """K18."""
    environ = {"MLFLOW_TRACKING_PASSWORD": SECRET, "MLFLOW_TRACKING_TOKEN": "tok3n"}
    assert mask_text(f"401 for {SECRET} and tok3n", environ) == "401 for *** and ***"


@given(
    st.text("abcXYZ019-_.", min_size=1),
    st.text("abcXYZ019-_.~!@$:", min_size=1),
    st.sampled_from(["http", "https", "postgresql"]),
)
def test_masking_keeps_user_and_host(user: str, password: str, scheme: str) -> None:
    masked = mask_uri(f"{scheme}://{user}:{password}@host:5000/x")
    assert masked == f"{scheme}://{user}@host:5000/x"
    assert mask_uri(masked) == masked


@pytest.mark.parametrize("text", ["x" * 3_000_000, "a://b" * 600_000, "://u:p" * 500_000, "?token=" * 400_000])
def test_long_logs_are_masked_in_linear_time(text: str) -> None:
    began = time.process_time()
    mask_text(text, {})
    assert time.process_time() - began < 5.0


def test_a_stored_address_gets_its_password_back_from_the_environment() -> None:
    complete = f"postgresql://ada:{SECRET}@db/mlflow"
    assert restore_uri(mask_uri(complete), {settings.TRACKING_URI: complete}) == complete
    assert restore_uri("http://other", {settings.TRACKING_URI: complete}) == "http://other"


def test_http_credentials_become_variables_of_mlflow() -> None:
    bare, env = split_credentials(f"http://ada:{SECRET}@host:5000/prefix")
    assert bare == "http://host:5000/prefix"
    assert env == {"MLFLOW_TRACKING_USERNAME": "ada", "MLFLOW_TRACKING_PASSWORD": SECRET}
    assert split_credentials("http://ada@host") == ("http://host", {"MLFLOW_TRACKING_USERNAME": "ada"})
    assert split_credentials("sqlite:////x.db") == ("sqlite:////x.db", {})
