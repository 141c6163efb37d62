// Code that uses the telemetry also uses loads, sources and errors.
@_exported public import CacheCore
