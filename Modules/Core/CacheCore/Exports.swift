// CacheCore's public interface uses HTTP requests, responses and fields, so one import provides both.
@_exported public import HTTPTypes
