// The API of CacheTesting uses CacheCore's types, so one import provides both.
@_exported public import CacheCore
