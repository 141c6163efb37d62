// The umbrella module, which re-exports the modules of an app. `CacheTesting` and `LoopbackOrigin` are not included, because they
// are for tests.
@_exported public import CacheCore
@_exported public import CacheManager
@_exported public import CacheNetworking
@_exported public import CacheTransport
@_exported public import DiskStore
@_exported public import ETagValidation
@_exported public import HTTPTypes
@_exported public import ImageCodecs
@_exported public import MemoryStore
