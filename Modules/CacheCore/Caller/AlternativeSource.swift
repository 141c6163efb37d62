#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
