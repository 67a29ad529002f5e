# The service: facade, controller and build pods are one image, told apart by their command:
# python3 -m api, python3 -m controller, python3 -m build.
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}

# Some libraries ask for the name of their user. No program of the base keeps the rights of its owner, and no
# package manager its caches. Those of the group shadow go: where a builder may not set their bit, it sees no change.
RUN echo "crewyard:x:65532:65532::/nonexistent:/usr/sbin/nologin" >> /etc/passwd \
 && echo "crewyard:x:65532:" >> /etc/group \
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {} + \
 && find /usr/bin /usr/sbin -xdev -type f -group shadow -delete \
 && rm -rf /var/cache/apt/* /var/cache/debconf/* /var/lib/apt/lists/*

# Dependencies are a layer of their own: a change of code leaves it as it is.
COPY requirements/service.txt /opt/crewyard/requirements.txt
RUN python3 -m pip install --no-cache-dir --require-hashes --requirement /opt/crewyard/requirements.txt

WORKDIR /opt/crewyard/service
COPY . /opt/crewyard/service/
# Compiled once here, since the root file system is read-only where it runs; the runner in the form that
# every crew's image gets too.
RUN python3 -m compileall -q /opt/crewyard/service \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/crewyard/service/runner

USER 65532:65532
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
