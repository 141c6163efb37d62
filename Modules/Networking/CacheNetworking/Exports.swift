// The interfaces of CacheNetworking consist of CacheCore's types, so one import provides both.
@_exported public import CacheCore
