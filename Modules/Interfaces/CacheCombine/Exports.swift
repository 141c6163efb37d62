// Callers use a publisher with Combine's operators, and its values have CacheManager's types. One import provides all
// of them.
@_exported public import CacheManager

#if canImport(Combine)
@_exported public import Combine
#elseif OpenCombine
@_exported public import OpenCombine
#endif
