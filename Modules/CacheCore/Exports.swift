// CacheCore's interfaces consist of HTTP requests, responses and fields, so one import brings both.
@_exported public import HTTPTypes
