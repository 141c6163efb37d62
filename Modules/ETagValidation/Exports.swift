// The interfaces of ETagValidation consist of CacheCore's types, so one import brings both.
@_exported public import CacheCore
