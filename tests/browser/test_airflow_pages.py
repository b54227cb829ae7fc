"""What a person sees of Ganger in Airflow's own pages, rendered by a real browser."""

import html
import os
import re
import shutil
import subprocess

import pytest

from training.serve import start_services, stop_services

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on PATH (Debian package chromium)"),
    pytest.mark.timeout(300),
]

TASKS = ("prepare_data", "provision_cluster", "train", "evaluate", "register_model", "teardown_cluster")
BROKEN = """\
name: mistyped
data: {source: digits}
model: {entrypoint: training.models.mlp}
train: {engine: tensorflow, strategy: multi_worker_mirrored, epochs: 3, batch_sise: 64}
cluster: {workers: 2}
"""
# The pages are programs: virtual time lets their requests finish before the DOM is printed.
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--virtual-time-budget=20000", "--dump-dom"),
)
TRIES = 10  # of about 3 s each: Airflow answers before it has read all DAG files


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    (pipelines / "mistyped.yaml").write_text(BROKEN)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
            patch.delenv(name)
        patch.setenv("GANGER_PIPELINES", str(pipelines))
        try:
            yield start_services(folder / "home", log=print).airflow_url
        finally:
            stop_services(folder / "home")


@pytest.fixture
def read_page(airflow, tmp_path):
    def read(path, until):
        """Return the words on a page once `until` is among them, or those of the last try."""
        words = ""
        for _ in range(TRIES):
            words = to_words(dump_dom(f"{airflow}/{path}", tmp_path / "profile"))
            if until in words:
                break
        return words

    return read


def dump_dom(url, profile):
    run = subprocess.run(
        [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", url], capture_output=True, text=True, timeout=60, check=True
    )
    return run.stdout


def to_words(page):
    """Return the text of a page: no code, no tags, single spaces."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_page_of_a_pipeline_shows_its_tasks(read_page):
    words = read_page("dags/digits", until=TASKS[0]).split()
    assert set(TASKS) <= set(words)
    assert "tensorflow" in words


def test_broken_file_is_in_the_list_with_its_tag(read_page):
    assert "mistyped broken spec" in read_page("dags", until="mistyped")


def test_description_of_a_broken_file_names_the_field(read_page):
    words = read_page("dags/mistyped/details", until="Description")
    assert re.search(r"Description Broken: \S+mistyped\.yaml:4: train\.batch_sise: is not a known key\.", words)
    assert "Did you mean `batch_size`?" in words
