// The interfaces of CacheManager use CacheCore's types, so one import provides both.
@_exported public import CacheCore
