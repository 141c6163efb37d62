// A client of the telemetry names loads, sources and errors.
@_exported public import CacheCore
