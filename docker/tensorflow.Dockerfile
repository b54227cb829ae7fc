# The control image plus the engine environment `tensorflow`: what runs tasks, and so ranks. From the repository's root,
# after the control image:
#   docker build -f docker/tensorflow.Dockerfile -t ganger-tensorflow:0.1.0 .
#   docker build -f docker/tensorflow.Dockerfile --build-arg ENVIRONMENT=tensorflow-gpu -t ganger-tensorflow-gpu:0.1.0 .
# The GPU variant holds CUDA as wheels; the host gives the driver (NVIDIA Container Toolkit). Horovod reduces with Gloo in
# both: its CUDA operations need the CUDA compiler. TensorFlow's own strategies reduce with NCCL on GPUs.
ARG PYTHON_IMAGE=python:3.11.13-slim-bookworm
ARG CONTROL_IMAGE=ganger-control:0.1.0

FROM ${PYTHON_IMAGE} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/ganger
ENV PYTHONDONTWRITEBYTECODE=1 UV_NO_CACHE=1 UV_LINK_MODE=copy PIP_NO_CACHE_DIR=1
COPY pyproject.toml README.md ./
COPY requirements requirements
COPY training/__init__.py training/errors.py training/settings.py training/
COPY training/environments training/environments
COPY plugins plugins
ARG PIP_INDEX_URL
ARG ENVIRONMENT=tensorflow
# Engine environments are made with the locked uv; it needs no whole control environment.
RUN python3.11 -m venv .venv \
 && .venv/bin/python -m pip install --quiet --require-hashes -r requirements/bootstrap.txt \
 && .venv/bin/python -m training.environments build ${ENVIRONMENT}

FROM ${CONTROL_IMAGE}
COPY --from=build /opt/ganger/.engines .engines
