# The control environment: Airflow's parts, the MLflow server, the ganger command. Build from the repository's root:
#   docker build -f docker/control.Dockerfile -t ganger-control:0.1.0 .
# The same code makes the environment here and in `make setup`, from the same locks.
ARG PYTHON_IMAGE=python:3.11.13-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
WORKDIR /opt/ganger
ENV PYTHONDONTWRITEBYTECODE=1 UV_NO_CACHE=1 UV_LINK_MODE=copy PIP_NO_CACHE_DIR=1
# Only what decides about the environment, so that a change of the code does not make it anew.
COPY pyproject.toml README.md ./
COPY requirements requirements
COPY training/__init__.py training/errors.py training/settings.py training/
COPY training/environments training/environments
COPY plugins plugins
# A registry of your own: --build-arg PIP_INDEX_URL=… (it stays in the image's history: put no password into it).
ARG PIP_INDEX_URL
RUN python3.11 -m training.environments build control postgres

FROM ${PYTHON_IMAGE}
RUN useradd --uid 50000 --create-home ganger \
 && install -d -o ganger -g ganger /var/lib/ganger
WORKDIR /opt/ganger
COPY --from=build /opt/ganger/.venv .venv
COPY . .
ENV PATH=/opt/ganger/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    AIRFLOW_HOME=/var/lib/ganger/airflow \
    AIRFLOW_CONFIG=/opt/ganger/airflow.cfg \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/ganger/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/ganger/plugins \
    GANGER_HOME=/var/lib/ganger
USER ganger
VOLUME /var/lib/ganger
CMD ["ganger", "doctor"]
