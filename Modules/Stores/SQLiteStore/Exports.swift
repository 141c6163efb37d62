// The interfaces of SQLiteStore use CacheCore's types, so one import makes both available.
@_exported public import CacheCore
