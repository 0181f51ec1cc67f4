"""One request, from what was asked to a compiled program.

The steps are those of `Resolver._enabled` and of the classes it hands over to, in order; each
way out has one name and one counter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pypto.jit import log
from pypto.jit.application import ExtraSourceError, application_digest
from pypto.jit.artifacts import FORMAT
from pypto.jit.building import Clock, Meter, Recipe
from pypto.jit.extern_sources import ExternSources, read_externs
from pypto.jit.log import LOG_VARIABLE, LogOutput
from pypto.jit.objects import ObjectTable, PersistentObject, PrivateObject
from pypto.jit.persistence import Persistent
from pypto.jit.placement import private_parent
from pypto.jit.policy import CachePolicy, PolicyLevels, capture_policy
from pypto.jit.private import PrivateBuilds
from pypto.jit.remembered import RootMemory, TextMemory
from pypto.jit.snapshot import SourceSnapshot
from pypto.jit.specialization import Specialization, forces_fresh_build
from pypto.jit.statistics import Counter, Statistics
from pypto.jit.stores import Stores
from pypto.jit.surroundings import Surroundings
from pypto.jit.toolchain import Toolchain, file_hasher
from pypto.runtime.compiled_program import CompiledProgram
from pypto.runtime.run_config import RunConfig
from pypto_store import ArtifactKey, ArtifactStore, CacheConfig, Digest
from pypto_toolchains.evidence import Unavailable
from pypto_toolchains.identity import ToolchainIdentity

Objects = ObjectTable[CompiledProgram]


@dataclass(frozen=True, slots=True)
class Request:
    """A captured request: what is asked for, by whom, and under which policy."""

    snapshot: SourceSnapshot
    specialization: Specialization
    policy: CachePolicy
    objects: Objects
    surroundings: Surroundings
    externs: ExternSources

    @property
    def recipe(self) -> Recipe:
        """How to build what is asked for."""
        environ = self.surroundings.tools
        return Recipe(self.snapshot, self.specialization, environ, self.policy.root, self.externs)

    @property
    def source(self) -> Digest | None:
        """The digest of the whole source, None where something has no identity."""
        python = self.snapshot.digest
        return None if python is None else self.externs.joined(python)

    @property
    def parent(self) -> Path:
        """Below which directory private output goes."""
        world = self.surroundings
        return Path(private_parent(world.environ, world.cwd, self.policy.root))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to.

    `repeatable`: an equal request gets the same object and counts as nothing but an object hit.
    """

    compiled: CompiledProgram
    repeatable: bool


class Resolver:
    """Resolves the requests of a process."""

    def __init__(
        self,
        *,
        statistics: Statistics,
        levels: PolicyLevels,
        toolchain: Toolchain,
        clock: Clock,
        memory: TextMemory,
    ) -> None:
        self._memory = memory
        self._statistics = statistics
        self._levels = levels
        self._toolchain = toolchain
        self._clock = clock
        self._log = LogOutput()
        self._stores = Stores(statistics, clock)

    def obtain(
        self,
        snapshot: SourceSnapshot,
        specialization: Specialization,
        config: RunConfig,
        objects: Objects,
        world: Surroundings,
        policy: CachePolicy | None = None,
    ) -> Answer:
        """The compiled program for a specialization of a kernel.

        Under `policy`, if it was captured already with the same `world`.

        Raises the errors of parsing and compiling, ValueError for a malformed policy, and nothing
        for trouble with the cache itself: that is counted.
        """
        begin = self._clock()
        meter = Meter(self._statistics, self._clock, snapshot.entry.name)
        self._log.follow(world.environ.get(LOG_VARIABLE))
        try:
            if policy is None:
                policy = self._policy(config, world)
            externs = read_externs(snapshot.externs, specialization.options.platform, world.environ)
            request = Request(snapshot, specialization, policy, objects, world, externs)
            forced = forces_fresh_build(specialization.options)
            if not policy.enabled or forced:
                # Before anything is counted: whoever assumed in vain asks once more.
                self._memory.confirm(snapshot.assumed, None)
            if not policy.enabled:
                self._statistics.add(Counter.DISABLED_REQUESTS)
            if forced:
                return self._forced(request, meter)
            if not policy.enabled:
                return self._disabled(request, meter)
            return self._enabled(request, meter)
        finally:
            spent = self._clock() - begin - meter.built_ns
            self._statistics.add(Counter.LOOKUP_NS, spent)

    def _policy(self, config: RunConfig, world: Surroundings) -> CachePolicy:
        levels, environ = self._levels, world.environ
        return capture_policy(levels.effective(config.cache_config, environ), environ, world.cwd)

    def anticipate(
        self, config: RunConfig, world: Surroundings
    ) -> tuple[CachePolicy | None, RootMemory | None]:
        """The policy of a request to come, and what is known where it will look.

        Begins what it will wait for. The policy is None if the request itself will refuse it, and
        nothing is known where nothing may be looked at.
        """
        try:
            policy = self._policy(config, world)
            if not policy.enabled or forces_fresh_build(config.compile_options()):
                return policy, None
        except (ValueError, TypeError):
            return None, None
        self._toolchain.begin()
        return policy, self._memory.below(policy.root)

    def flush_remotes(self, timeout: float) -> bool:
        """Wait for uploads, at most `timeout` seconds for each remote; whether all are done."""
        return self._stores.flush_remotes(timeout)

    def unreadable(self, kernel: str, reason: str, config: RunConfig, world: Surroundings) -> None:
        """Count a request for a kernel that has no text, which no policy can help.

        Raises ValueError for a malformed policy.
        """
        enabled = self._levels.effective(config.cache_config, world.environ).enabled
        forced = forces_fresh_build(config.compile_options())
        if not enabled:
            self._statistics.add(Counter.DISABLED_REQUESTS)
        if forced:
            self._statistics.add(Counter.FORCED_REBUILDS)
        elif enabled:
            self._count_bypass(kernel, reason)

    def _forced(self, request: Request, meter: Meter) -> Answer:
        """A request for the build itself: no identity, no lookup, nothing kept."""
        self._statistics.add(Counter.FORCED_REBUILDS)
        return Answer(self._private(request, meter).fresh(), repeatable=False)

    def _disabled(self, request: Request, meter: Meter) -> Answer:
        """No cache root is touched and no tool is asked anything."""
        private = self._private(request, meter)
        source = request.source
        if source is None or request.externs.problem is not None:
            # Not all that the build reads is known, so nothing tells when it changes.
            return Answer(private.fresh(), repeatable=False)
        name = PrivateObject("disabled", source, "", request.specialization.digest.hex)
        compiled = self._object(request, name, private.fresh)
        return Answer(compiled, self._repeatable(request))

    def _enabled(self, request: Request, meter: Meter) -> Answer:
        policy, world = request.policy, request.surroundings
        root = policy.root
        assert root is not None
        source = request.source
        if source is None:
            return self._bypass(request, meter, str(request.snapshot.bypass))
        try:
            application = application_digest(
                policy.extra_source_paths, policy.extra_fingerprint, file_hasher()
            )
        except ExtraSourceError as error:
            return self._bypass(request, meter, str(error))
        asked = world.question(request.specialization.options.platform, root)
        identity = self._toolchain.identity(asked)
        self._memory.confirm(request.snapshot.assumed, _version_of(identity))
        if isinstance(identity, Unavailable):
            if request.externs.problem is not None:
                return self._bypass(request, meter, str(identity))
            self._count_bypass(request.recipe.name, str(identity))
            private = PrivateObject(
                "bypass", source, application.hex, request.specialization.digest.hex
            )
            compiled = self._object(request, private, self._private(request, meter).fresh)
            return Answer(compiled, repeatable=False)
        key = _key(request, identity, source, application)

        def restore_or_build() -> CompiledProgram:
            parent = request.parent
            persistent = Persistent(
                store=self._stores.at(policy),
                key=key,
                recipe=replace(request.recipe, identified=True),
                parent=parent,
                meter=meter,
                statistics=self._statistics,
                recheck=lambda: self._changed(request, application),
                patched=lambda: self._toolchain.changed(asked),
                explain=lambda store: _explain(store, key, request, identity),
                private=PrivateBuilds(request.recipe, lambda: parent, world.cwd, meter),
            )
            compiled = persistent.restore_or_build()
            if compiled.artifact_key is not None and not policy.readonly:
                self._toolchain.remember(identity, root)
                self._memory.keep(root, request.snapshot)
            return compiled

        if request.externs.problem is not None:
            # Looked up and found missing; what is built then is for this request alone.
            return Answer(restore_or_build(), repeatable=False)
        name = PersistentObject(key.digest.hex, root, policy.readonly)
        return Answer(self._object(request, name, restore_or_build), self._repeatable(request))

    def identify(
        self,
        snapshot: SourceSnapshot,
        specialization: Specialization,
        config: CacheConfig,
        world: Surroundings,
    ) -> tuple[ArtifactKey, Recipe] | str:
        """The key that an enabled request has, and how to build it; or why it has no key.

        Looks nothing up, counts nothing, and writes nothing.
        """
        policy = capture_policy(config, world.environ, world.cwd)
        assert policy.root is not None
        externs = read_externs(snapshot.externs, specialization.options.platform, world.environ)
        request = Request(snapshot, specialization, policy, ObjectTable(), world, externs)
        if forces_fresh_build(specialization.options):
            return "a request for diagnostics or for files in a place of its own is never stored"
        source = request.source
        unfit = snapshot.mismatch() or externs.problem
        if source is None or unfit is not None:
            return unfit or str(snapshot.bypass)
        try:
            application = application_digest(
                policy.extra_source_paths, policy.extra_fingerprint, file_hasher()
            )
        except ExtraSourceError as error:
            return str(error)
        platform = specialization.options.platform
        identity = self._toolchain.identity(world.question(platform, policy.root))
        if isinstance(identity, Unavailable):
            return str(identity)
        recipe = replace(request.recipe, identified=True)
        return _key(request, identity, source, application), recipe

    def _repeatable(self, request: Request) -> bool:
        """Whether guards alone tell that nothing has changed."""
        return request.snapshot.digest is not None and not request.externs.packages

    def _object(
        self,
        request: Request,
        name: PersistentObject | PrivateObject,
        make: Callable[[], CompiledProgram],
    ) -> CompiledProgram:
        compiled, live = request.objects.obtain(name, make)
        if live:
            self._statistics.add(Counter.OBJECT_HITS)
        return compiled

    def _bypass(self, request: Request, meter: Meter, reason: str) -> Answer:
        """Inputs that cannot be read or identified: nothing may be reused, so nothing is kept."""
        self._memory.confirm(request.snapshot.assumed, None)
        self._count_bypass(request.recipe.name, reason)
        return Answer(self._private(request, meter).fresh(), repeatable=False)

    def _count_bypass(self, kernel: str, reason: str) -> None:
        self._statistics.bypass(reason)
        log.bypassed(kernel, reason)

    def _private(self, request: Request, meter: Meter) -> PrivateBuilds:
        cwd = request.surroundings.cwd
        return PrivateBuilds(request.recipe, lambda: request.parent, cwd, meter)

    def _changed(self, request: Request, application: Digest) -> str | None:
        """Why what is being built is no longer what was asked for, or None."""
        if not request.snapshot.guards.hold():
            return f"a value that kernel {request.recipe.name!r} uses changed during its build"
        if request.externs.packages:
            platform = request.specialization.options.platform
            environ = request.surroundings.environ
            if read_externs(request.snapshot.externs, platform, environ) != request.externs:
                return (
                    f"an extern source of kernel {request.recipe.name!r} changed during its build"
                )
        policy = request.policy
        try:
            now = application_digest(
                policy.extra_source_paths, policy.extra_fingerprint, file_hasher()
            )
        except ExtraSourceError as error:
            return str(error)
        return None if now == application else "an extra source changed during the build"


def _key(
    request: Request, identity: ToolchainIdentity, source: Digest, application: Digest
) -> ArtifactKey:
    return ArtifactKey(
        format=FORMAT,
        environment=identity.digest,
        source=source,
        application=application,
        specialization=request.specialization.digest,
    )


def _version_of(identity: ToolchainIdentity | Unavailable) -> str | None:
    """What tells this package from every other version of it, its interpreter included."""
    if isinstance(identity, Unavailable):
        return None
    return next(item.digest.hex for item in identity.components if item.component == "pypto")


def _explain(
    store: ArtifactStore, key: ArtifactKey, request: Request, identity: ToolchainIdentity
) -> None:
    """Leave the readable inputs of a key that was just published; no failure of it is one."""
    from pypto.jit.evidence import evidence

    try:
        store.keep_evidence(
            evidence(
                key,
                request.snapshot,
                request.specialization,
                request.policy,
                identity,
                file_hasher(),
                request.externs,
            )
        )
    except Exception:  # noqa: BLE001 - a lost explanation is no reason to fail a compilation
        log.unexplained(request.recipe.name)
