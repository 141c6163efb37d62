// The configuration has types of these modules, so one import makes them available.
@_exported public import CacheCore
@_exported public import CacheManager
@_exported public import ImageCodecs
@_exported public import ImageWorkers
