// The interfaces of CacheTransport consist of CacheCore's types, so one import brings both.
@_exported public import CacheCore
