# The service image of API server, controller and build pods; they differ by command:
# python3 -m api, python3 -m controller, python3 -m build.
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}

# ssh-keygen and gpg verify the signatures of commits. A builder that cannot change its user lets apt stay root.
RUN apt-get -o APT::Sandbox::User=root update \
 && apt-get -o APT::Sandbox::User=root install --yes --no-install-recommends gpg openssh-client \
 && rm -rf /var/cache/apt/* /var/cache/debconf/* /var/lib/apt/lists/*

# Some libraries look up the name of their user. Remove setuid and setgid bits and the package caches. Delete the
# programs of the group shadow: a builder that cannot change their bits would see no change.
RUN echo "crewyard:x:65532:65532::/nonexistent:/usr/sbin/nologin" >> /etc/passwd \
 && echo "crewyard:x:65532:" >> /etc/group \
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {} + \
 && find /usr/bin /usr/sbin -xdev -type f -group shadow -delete \
 && rm -rf /var/cache/apt/* /var/cache/debconf/* /var/lib/apt/lists/*

# Dependencies have a separate layer, which a change of code does not invalidate.
COPY requirements/service.txt /opt/crewyard/requirements.txt
RUN python3 -m pip install --no-cache-dir --require-hashes --requirement /opt/crewyard/requirements.txt

WORKDIR /opt/crewyard/service
COPY . /opt/crewyard/service/
# Compile here, because the root file system is read-only at run time; the runner in the same form as in
# every crew's image.
RUN python3 -m compileall -q /opt/crewyard/service \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/crewyard/service/runner

USER 65532:65532
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
