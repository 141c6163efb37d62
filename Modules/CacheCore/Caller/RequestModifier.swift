public import HTTPTypes

/// Changes a load's request, or refuses it, before the cache is looked at: what it sets takes part in the resource's identity and
/// in `Vary`, as if the caller had set it. To refuse is to throw, ``CacheError/Code/refused`` for instance: the load ends with
/// that error, and nobody is asked.
///
/// Called once for each load, and once for each of its alternatives; not for redirects, which take the fields along as redirects
/// do. Looking up and removing call it too, since they have to find what a load would. Synchronous and called on the caller's
/// thread, since hits in memory are: return quickly.
///
/// ```swift
/// let modifier: RequestModifier = { request throws(CacheError) in
///   guard request.scheme == "https" else { throw CacheError(.refused, reason: "only https is loaded here") }
///   request.headerFields[.acceptLanguage] = "de"
/// }
/// ```
public typealias RequestModifier = @Sendable (inout HTTPRequest) throws(CacheError) -> Void
