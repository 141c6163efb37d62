#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A policy that decides when a load uses a cached response and when it sends a request.
///
/// ```swift
/// let resource = try await manager.load(url, options: RequestOptions { $0.policy = .staleWhileRevalidate })
/// ```
public enum LoadPolicy: Hashable, Sendable {
  /// Follows RFC 9111: uses a fresh response and revalidates a stale one. A response without an explicit lifetime is revalidated,
  /// never assumed to be fresh.
  case standard
  /// Uses any cached response that has not reached the store's own time to live. Otherwise the load sends a request.
  case cacheFirst
  /// Sends a conditional request if a response is stored. A fresh response whose origin states that it does not change
  /// (`immutable`, RFC 8246) is used without a request.
  ///
  /// - Parameters:
  ///   - atMostEvery: The minimum interval between requests, at least zero. A response that was stored or revalidated more
  ///     recently is used without a request. A request that the origin received and that failed counts too. Until the interval
  ///     has passed, loads use the stored response, with the failure as their `fallbackReason`, or else throw the same error. A
  ///     request that could not be sent, for example offline, does not count. A deadline counts if a request was in flight.
  ///     Failures of loads with `RequestOptions.hooks` and of `ResourceManager.respond(to:)` do not count.
  ///   - showCachedAfter: The time after which the stored response is used if the network is slower, at least zero. The request
  ///     continues in the background.
  case revalidate(atMostEvery: Duration? = nil, showCachedAfter: Duration? = nil)
  /// Reads nothing from the cache, but stores the response.
  case reload
  /// Sends no request and uses any stored response, however old. A miss throws ``CacheError/Code/notCached``.
  case cacheOnly
  /// Uses the memory store, or else sends a request. The disk is not read.
  case memoryElseReload
  /// Returns the stored response at once and revalidates it in the background (RFC 5861 §3). The event stream also delivers the
  /// updated response; other calls return only the stored one.
  case staleWhileRevalidate
}

/// The stored responses that a load may use in place of a response that did not arrive, or that reports a failure.
///
/// The setting concerns this cache alone, and nothing of it is sent to the origin. A stored response never replaces one of
/// another variant or partition, one to an unsafe request, or one with ``LoadPolicy/reload``. A cancellation and errors of the
/// program, such as ``CacheError/Code/misuse``, remain errors.
///
/// ```swift
/// let lastKnown = RequestOptions { $0.staleFallback = .anyStored }
/// ```
public enum StaleFallback: Hashable, Sendable, CaseIterable {
  /// The validator decides (RFC 9111 §4.2.4, RFC 5861 §4). A stored response is used if no response arrives, unless a directive
  /// such as `must-revalidate` forbids it. With `stale-if-error`, it also replaces a server error.
  case standard
  /// Any stored response is used, whatever the failure and the directives are: offline, after a timeout, or for a status that the
  /// load does not accept. For an HTTP caller, a 429 and the statuses from 500 are failures.
  ///
  /// The failed response is not stored. A response that arrived completely replaces the stored one, even if a transform then
  /// fails to decode it.
  case anyStored
  /// No stored response is used. The failure is the error of the load.
  case never
}

/// A policy that decides what the durable store receives: the original bytes, the encoded value of a ``ResourceTransform``, or
/// both.
///
/// Loads use any matching entry of the store under every policy. If a transform has no encoder, its original is stored whatever
/// the policy says. The same is true for loads of plain bytes and for loads into files.
///
/// The bytes of a `file:` URL are never copied into a durable store. Values made of them are stored under every policy other than
/// ``originals``.
public enum StoragePolicy: String, Hashable, Sendable, CaseIterable {
  /// Stores only the originals. Every transform can be applied to them again without the network.
  case originals
  /// Stores only the encoded values, which use the least space. Another transform of the same resource is loaded again. The
  /// originals do not enter the memory store either, if there is a durable store for the values.
  case variants
  /// Stores both.
  case all
  /// Stores the original, and also the encoded value if it is smaller.
  ///
  /// A full store evicts the least used entries. If the same transformed value is shown repeatedly, its original is evicted
  /// first.
  case automatic
}

/// Another source for a resource, requested if the original cannot be loaded.
///
/// ```swift
/// let options = RequestOptions { $0.alternatives = [.mirror(elsewhere), .lowData(preview)] }
/// ```
///
/// The request to it has the load's method and fields, without conditions. At another origin it also has no credentials and no
/// cookies.
public enum AlternativeSource: Hashable, Sendable {
  /// The same resource at another URL. The URL may be a `file:` URL if the manager has a handler for it.
  ///
  /// The response is stored under the original's URL, without the other server's validators (`ETag`, `Last-Modified`). The
  /// original is therefore never asked to revalidate bytes that it did not send.
  case mirror(URL)
  /// A smaller resource for networks in low-data mode (``NetworkAccess/constrained``). It is requested only if the original needs
  /// a network that may not be used.
  ///
  /// The response is stored under its own URL, so the original is loaded in full when the network allows it again.
  case lowData(URL)

  /// The URL of the source.
  public var url: URL {
    switch self {
    case .mirror(let url), .lowData(let url): url
    }
  }

  /// Whether the source is a smaller resource.
  package var isLowData: Bool {
    if case .lowData = self { true } else { false }
  }
}

/// The statuses that a load accepts as success.
///
/// ```swift
/// options.acceptedStatuses = AcceptedStatuses(200..<300, 304..<305)
/// ```
public struct AcceptedStatuses: Hashable, Sendable {
  private let ranges: [Range<Int>]

  /// Creates a set of the statuses in the given ranges.
  public init(_ ranges: Range<Int>...) { self.ranges = ranges }

  /// The statuses from 200 to 299.
  public static let success = AcceptedStatuses(200..<300)

  /// Returns whether the set contains `status`.
  public func contains(_ status: Int) -> Bool { ranges.contains { $0.contains(status) } }
}

extension AcceptedStatuses: CustomStringConvertible {
  /// The ranges, separated by commas: `200..<300, 304..<305`.
  public var description: String { ranges.map(\.description).joined(separator: ", ") }
}
